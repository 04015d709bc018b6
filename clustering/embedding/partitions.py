"""Day partitions of article vectors: made ahead of the articles, and dropped when they are old."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clustering.embedding.space import Space
    from clustering.store.session import Session

# Made with the first articles of a day for the next ones: then no run at midnight waits for a lock.
DAYS_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Partition:
    """One day of a space.

    Attributes:
        name: name of its table.
        day: the day, in UTC.
        size_bytes: what it takes on the disk, indexes included.
    """

    name: str
    day: date
    size_bytes: int


def make_partitions(session: Session, event_times: Iterable[datetime]) -> None:
    """Make the day partitions that some times fall into, and the next days', where they are missing."""
    parent = session.part("article_vectors")
    days = {moment.astimezone(UTC).date() for moment in event_times}
    ahead = {max(days) + timedelta(days=number) for number in range(1, DAYS_AHEAD + 1)}
    by_name = {f"{parent}_{day:%Y%m%d}": day for day in sorted(days | ahead)}
    for (name,) in session.rows("missing_partitions", names=list(by_name)):
        first = datetime.combine(by_name[name], time(), UTC)
        last = first + timedelta(days=1)
        session.define("make_partition", partition=name, first=first, last=last)


def partitions(session: Session, space: Space) -> list[Partition]:
    """Return the day partitions of a space, the earliest first."""
    found = []
    for row in session.rows("day_partitions", article_table=space.article_table):
        day = datetime.strptime(row.name[-8:], "%Y%m%d").replace(tzinfo=UTC).date()
        found.append(Partition(row.name, day, row.size_bytes))
    return found


def drop_partition(session: Session, space: Space, partition: Partition) -> None:
    """Detach a day from its space and drop it, in one transaction."""
    parts = {"article_vectors": space.article_table, "partition": partition.name}
    with session.transaction():
        session.define("detach_partition", **parts)
        session.define("drop_partition", **parts)
