"""Reading events: records for readers of the API and of the command line."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from clustering.store.session import Session

_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class EventStory:
    """A story of an event, with the decision that put it there.

    Attributes:
        id: the story's id.
        headline: title of its headline article.
        size: number of articles.
        sources: number of feeds that tell it.
        languages: BCP 47 tags of its articles, sorted.
        first_time: event time of its first article.
        latest_time: event time of its latest article.
        score: mean score against the event, or against the story that it began the event with.
        threshold: what the score had to reach.
        nearest_id: the story of the event nearest to it at that time.
        run_id: run that put it there.
    """

    id: int
    headline: str
    size: int
    sources: int
    languages: list[str]
    first_time: datetime
    latest_time: datetime
    score: float
    threshold: float
    nearest_id: int
    run_id: int


@dataclass(frozen=True, slots=True)
class MergedEvent:
    """An event that became part of another: its old id, the score and threshold of the merge, and the run.

    One that an editor's merge of stories emptied has neither score nor threshold.
    """

    event_id: int
    score: float | None
    threshold: float | None
    run_id: int


@dataclass(frozen=True, slots=True)
class Event:
    """Stories about one running affair.

    Attributes:
        id: means this event for ever; after a merge the ids of both lead here.
        headline: that of its largest story.
        stories: number of stories.
        articles: number of their articles, duplicates not counted.
        languages: BCP 47 tags of its articles, sorted.
        first_time: event time of its first article.
        latest_time: event time of its latest article.
        open: whether a story of today could still join it.
        timeline: its stories in order of time.
        absorbed: events that became part of it.
    """

    id: int
    headline: str
    stories: int
    articles: int
    languages: list[str]
    first_time: datetime
    latest_time: datetime
    open: bool
    timeline: tuple[EventStory, ...]
    absorbed: tuple[MergedEvent, ...]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events are wanted.

    Attributes:
        since: those whose latest article is older are left out.
        until: those whose first article is younger are left out.
        min_stories: least number of stories.
        only_open: whether closed ones are left out.
        event_id: only this one, or the one that it became part of.
    """

    since: datetime | None = None
    until: datetime | None = None
    min_stories: int = 2
    only_open: bool = False
    event_id: int | None = None


def list_events(
    session: Session, wanted: EventFilter, gap: timedelta, most: int | None = None
) -> list[Event]:
    """Return events with their timelines, the latest first.

    Args:
        session: any.
        wanted: which events.
        gap: how long an event stays open.
        most: at most so many; None for all.
    """
    rows = session.rows(
        "list_events",
        window=gap,
        since=wanted.since,
        until=wanted.until,
        min_stories=wanted.min_stories,
        event_id=wanted.event_id,
        only_open=wanted.only_open,
        most=_NO_LIMIT if most is None else most,
    )
    ids = [row.id for row in rows]
    timelines, absorbed = _timelines(session, ids), _absorbed(session, ids)
    return [
        Event(**row._asdict(), timeline=tuple(timelines[row.id]), absorbed=tuple(absorbed[row.id]))
        for row in rows
    ]


def find_event(session: Session, event_id: int, gap: timedelta) -> Event:
    """Return one event; the id of an absorbed one leads to its survivor.

    Raises:
        NotFoundError: no event ever had that id.
    """
    found = list_events(session, EventFilter(min_stories=1, event_id=event_id), gap)
    if not found:
        raise NotFoundError(f"there is no event {event_id}; `stories events` lists those there are")
    return found[0]


def _timelines(session: Session, event_ids: Sequence[int]) -> dict[int, list[EventStory]]:
    found: defaultdict[int, list[EventStory]] = defaultdict(list)
    for event_id, *values in session.rows("event_timeline", event_ids=list(event_ids)):
        found[event_id].append(EventStory(*values))
    return found


def _absorbed(session: Session, event_ids: Sequence[int]) -> dict[int, list[MergedEvent]]:
    found: defaultdict[int, list[MergedEvent]] = defaultdict(list)
    for absorbed_id, event_id, *values in session.rows(
        "absorbed_events", event_ids=list(event_ids)
    ):
        found[event_id].append(MergedEvent(absorbed_id, *values))
    return found
