"""Taking the decisions of a run about events back, with all that later runs built on them.

The next run finds events anew for the stories that are in none then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clustering.store.session import Session


class EventDecision(NamedTuple):
    """A story put into an event, or one event that became part of another.

    Attributes:
        run_id: run that decided.
        story_id: the story; None for a merge.
        event_id: the event chosen for it; of a merge the absorbed one.
        survivor_id: of a merge the other one.
    """

    run_id: int
    story_id: int | None
    event_id: int
    survivor_id: int | None


@dataclass(frozen=True, slots=True)
class UnravelledEvents:
    """What has to go for a run to go: its own decisions and those built on them."""

    decisions: frozenset[EventDecision]

    @property
    def stories(self) -> list[int]:
        """The stories that leave their events, sorted."""
        return sorted({d.story_id for d in self.decisions if d.story_id is not None})

    @property
    def events(self) -> list[int]:
        """The events that the decisions are about, sorted."""
        return sorted(_events(self.decisions))

    @property
    def absorbed(self) -> list[int]:
        """The events whose merges go, sorted."""
        return sorted({d.event_id for d in self.decisions if d.story_id is None})


def unravel_events(session: Session, run_id: int, story_ids: Sequence[int]) -> UnravelledEvents:
    """Return the decisions of a run about events, with those of later runs built on them.

    Args:
        session: any.
        run_id: the run.
        story_ids: stories that decisions of the run, or what was built on it, are about: what was
            decided of their events since goes as well.
    """
    fresh = set(
        session.records(
            EventDecision, "event_decisions_of_run", run_id=run_id, story_ids=list(story_ids)
        )
    )
    found: set[EventDecision] = set()
    events: set[int] = set()
    while fresh:
        found |= fresh
        new = _events(fresh) - events
        events |= new
        about = session.records(
            EventDecision, "event_decisions_about", event_ids=sorted(new), run_id=run_id
        )
        fresh = set(about) - found
    return UnravelledEvents(frozenset(found))


def take_events_back(session: Session, gone: UnravelledEvents, undo_run_id: int) -> None:
    """Bring back what held before a run; inside a transaction.

    Args:
        session: inside a transaction.
        gone: what is taken back.
        undo_run_id: run that takes it back.
    """
    family = [row.id for row in session.rows("event_families", event_ids=gone.events)]
    session.execute("take_event_links_back", story_ids=gone.stories, undo_run_id=undo_run_id)
    session.execute("take_event_merges_back", absorbed_ids=gone.absorbed, undo_run_id=undo_run_id)
    session.execute("redirect_events_again", event_ids=family)
    session.execute("regroup_stories", event_ids=family)
    session.execute("shrink_events", event_ids=family)
    session.execute("touch_stories", story_ids=gone.stories)


def _events(decisions: Iterable[EventDecision]) -> set[int]:
    named = {event for d in decisions for event in (d.event_id, d.survivor_id)}
    return {event for event in named if event is not None}
