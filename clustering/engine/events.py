"""Events: stories about one affair that runs over days."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clustering.engine.opened import Opened
from clustering.events.reading import Event, EventFilter, find_event, list_events
from clustering.events.trials import Trial

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


class Events(Opened):
    """The part of the engine that answers for events."""

    def events(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        min_stories: int = 2,
        only_open: bool = False,
        limit: int | None = None,
    ) -> list[Event]:
        """Return events with their timelines, the latest first.

        Args:
            since: events whose latest article is older are left out.
            until: events whose first article is younger are left out.
            min_stories: least number of stories.
            only_open: leave out those that no story can join any more.
            limit: at most so many; None for all.
        """
        wanted = EventFilter(since, until, min_stories, only_open)
        return list_events(self._database.session, wanted, self._event_gap, limit)

    def event(self, event_id: int) -> Event:
        """Return one event; the id of an absorbed one leads to its survivor.

        Raises:
            NotFoundError: no event ever had that id.
        """
        return find_event(self._database.session, event_id, self._event_gap)

    def events_at(self, link: float) -> dict[int, int]:
        """Return the event of each story at another threshold, both by id.

        Args:
            link: one of the `event_links` that this database was played with.
        """
        return Trial(self._database.session, link).events()

    def _make_trials(self, links: Iterable[float]) -> list[Trial]:
        trials = [Trial(self._database.session, link) for link in sorted(set(links))]
        for trial in trials:
            trial.make()
        return trials

    @property
    def _event_gap(self) -> timedelta:
        return timedelta(hours=self.thresholds.windows.event_gap_hours)
