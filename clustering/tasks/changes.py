"""Word of stories that are new, changed or merged: told at once where the server can, else asked for."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clustering.store.session import Session, translated_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

_PAGE = 500
DEFAULT_POLL_SECONDS = 5.0
# A connection that died without a word is noticed by looking anyway.
_LOOK_ANYWAY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class StoryChange:
    """A story as it stands after a change.

    Attributes:
        change: number of its last change; whoever begins after it the next time misses nothing.
        kind: `new` to this reader, `changed`, or `merged` into another story.
        id: the story's id.
        merged_into: the story that it became part of, or None.
        headline: title of the article nearest to the centroid.
        languages: BCP 47 tags of its articles, sorted.
        sources: number of feeds that tell it.
        size: number of articles.
        first_time: event time of its first article.
        latest_time: event time of its latest article.
    """

    change: int
    kind: str
    id: int
    merged_into: int | None
    headline: str
    languages: list[str]
    sources: int
    size: int
    first_time: datetime
    latest_time: datetime


def latest_change(session: Session) -> int:
    """Return the number of the last change; 0 where there is none."""
    return int(session.value("latest_change"))


def changes_after(session: Session, after: int) -> Iterator[StoryChange]:
    """Yield the stories that changed after a change, in order, each as it stands now.

    A story that changes again while this goes on comes again, and is new only once.
    """
    position, told = after, set[int]()
    while page := session.records(
        StoryChange, "changes_after", after=position, known=after, most=_PAGE
    ):
        for change in page:
            again = change.kind == "new" and change.id in told
            yield replace(change, kind="changed") if again else change
            told.add(change.id)
        position = page[-1].change


def follow(
    session: Session, after: int, poll_seconds: float, warn: Callable[[str], None]
) -> Iterator[StoryChange]:
    """Yield changes as `changes_after` does, then wait for more, for ever.

    Args:
        session: reads the stories; another connection to the same server listens.
        after: number of the last change that is known.
        poll_seconds: how often to ask where the server cannot tell.
        warn: is told that it has to ask.

    Raises:
        DatabaseUnreachable: the connection broke.
    """
    with closing(Session(session.dsn)) as ear:
        wait = _wait(ear, poll_seconds, warn)
        while True:
            for change in changes_after(session, after):
                after = change.change
                yield change
            wait()


def deafness(session: Session) -> str | None:
    """Return why the server cannot tell of changes over this connection, or None where it can.

    LISTEN succeeds behind a pooler in transaction mode too, and nothing is ever told: a pooler is known
    by the process ids of its own that it gives its clients. A replica refuses LISTEN.
    """
    if session.connection.info.backend_pid != session.value("backend_pid"):
        return "a pooler stands before the database"
    return "the database is a replica" if session.value("is_replica") else None


def _wait(ear: Session, poll_seconds: float, warn: Callable[[str], None]) -> Callable[[], None]:
    """Return what waits until there may be changes."""
    if why := deafness(ear):
        warn(f"{why}: asking every {poll_seconds:g} s for changes")
        return lambda: time.sleep(poll_seconds)
    ear.execute("listen_for_changes")
    return lambda: _await_notification(ear)


def _await_notification(ear: Session) -> None:
    with translated_errors():
        for _ in ear.connection.notifies(timeout=_LOOK_ANYWAY_SECONDS, stop_after=1):
            pass
