"""Reading stories and figures: nothing here writes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from clustering.engine.opened import Opened
from clustering.stories.reading import (
    Story,
    StorySummary,
    find_story,
    list_stories,
    whole_stories,
)
from clustering.stories.why import Why, why

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


class Assignment(NamedTuple):
    """Where one article is.

    Attributes:
        story_id: its story, a duplicate's that of its canonical article; None for no story.
        pass_name: `match` or `discover`, the pass that placed it; `duplicate` where the cascade
            folded it; None for no story.
        event_id: the event of its story; None where it is in none.
    """

    story_id: int | None
    pass_name: str | None
    event_id: int | None


_SHOWN = 10  # of largest stories, closest calls and runs
NOWHERE = Assignment(None, None, None)


class Reading(Opened):
    """The part of the engine that reads."""

    def stories(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        min_size: int = 2,
        limit: int | None = None,
    ) -> Iterator[Story]:
        """Yield stories alive between two times, the latest first, with their articles.

        Args:
            since: stories whose latest article is older are left out.
            until: stories whose first article is younger are left out.
            min_size: least number of articles, duplicates not counted.
            limit: at most this many; None for all.
        """
        found = self.summaries(since=since, until=until, min_size=min_size, limit=limit)
        yield from whole_stories(self._database.session, found)

    def summaries(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        min_size: int = 2,
        limit: int | None = None,
        sort: str | None = None,
    ) -> list[StorySummary]:
        """Return stories as `stories` does, without their articles.

        `sort` names a score that a task gave (`score`, `rank.novelty`): the highest come first, and
        stories without it are left out.
        """
        return list_stories(
            self._database.session,
            since=since,
            until=until,
            min_size=min_size,
            most=limit,
            sort=sort,
        )

    def story(self, story_id: int) -> Story:
        """Return one story; the id of an absorbed one leads to its survivor.

        Raises:
            NotFoundError: no story ever had that id.
        """
        session = self._database.session
        (story,) = whole_stories(session, [find_story(session, story_id)])
        return story

    def why(self, article_id: int, story_id: int | None = None) -> Why:
        """Work out why an article is in its story and in no other.

        Args:
            article_id: the article.
            story_id: a story to compare with besides those near it.

        Raises:
            NotFoundError: there is no such article or story.
            CalibrationError: there are no thresholds yet.
        """
        return why(self._database.session, self.calibration, article_id, story_id)

    def stats(self, *, days: int = 7) -> dict[str, Any]:
        """Return totals, and placements, links and verdicts with their scores.

        `largest` are the stories with most articles, with the share that each has of all articles
        of late; `closest` the placements and merges that least exceeded their threshold.
        `bands` tells when a threshold has drifted: the share of links just above it, or of those
        that were undone, grows from day to day.

        Args:
            days: how far back from the latest article.
        """
        session, span = self._database.session, timedelta(days=days)
        (totals,) = session.rows("totals")
        return {
            "totals": totals._asdict(),
            "placements": [row._asdict() for row in session.rows("placements_by_day", span=span)],
            "links": [row._asdict() for row in session.rows("links_by_day", span=span)],
            "bands": [row._asdict() for row in session.rows("links_by_band", span=span)],
            "largest": [
                row._asdict() for row in session.rows("largest_stories", span=span, most=_SHOWN)
            ],
            "closest": [
                row._asdict() for row in session.rows("closest_calls", span=span, most=_SHOWN)
            ],
            "flags": [row._asdict() for row in session.rows("judgements_by_stage")],
            "runs": [row._asdict() for row in session.rows("latest_runs", most=_SHOWN)],
        }

    def assignments(self) -> dict[tuple[str, str], Assignment]:
        """Return where every article is, by its source and the source's own id."""
        rows = self._database.session.rows("assignments")
        return {
            (row.source, row.guid): Assignment(
                row.story_id, row.pass_name if row.story_id else None, row.event_id
            )
            for row in rows
        }
