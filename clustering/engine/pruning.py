"""Keeping a database from growing without end: old vectors go, stories and links stay."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from clustering.embedding.partitions import drop_partition, partitions
from clustering.embedding.space import all_spaces
from clustering.engine.opened import Opened
from clustering.engine.runs import run_lock
from clustering.errors import InvalidInput
from clustering.store.session import Session

if TYPE_CHECKING:
    from clustering.embedding.space import Space


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was dropped.

    Attributes:
        before: the earliest day (UTC) whose vectors were kept.
        partitions: number of day partitions dropped, of all spaces.
        size_bytes: what they took on the disk.
    """

    before: date
    partitions: int
    size_bytes: int


class Pruning(Opened):
    """The part of the engine that drops what is old."""

    def prune(self, keep: timedelta) -> Pruned:
        """Drop the vectors of articles older than `keep`, a day at a time, in every space.

        Articles, stories, links and scores stay as they are. What needs the vectors of an old article
        (`why`, moving it, undoing its run) says that they were pruned. Days whose articles can still
        change a story stay, however long ago the latest article came.

        Args:
            keep: how long vectors are kept; at least as long as a story can change.

        Raises:
            InvalidInput: `keep` is shorter than that.
            RunLocked: another run works on the database.
        """
        least = self.thresholds.live_span
        if keep < least:
            raise InvalidInput(
                f"stories can change for {least / timedelta(hours=1):g} hours; keep at least "
                f"{-(-least // timedelta(days=1))}d"
            )
        with run_lock(self.dsn), closing(Session(self.dsn)) as session:
            before = self._first_kept(session, keep)
            dropped = [
                size for space in all_spaces(session) for size in _drop(session, space, before)
            ]
        return Pruned(before, len(dropped), sum(dropped))

    def _first_kept(self, session: Session, keep: timedelta) -> date:
        live = session.value("live_since", span=self.thresholds.live_span)
        oldest = datetime.now(UTC) - keep
        return (oldest if live is None else min(oldest, live)).date()


def _drop(session: Session, space: Space, before: date) -> list[int]:
    """Drop a space's days before one; returns what each took."""
    old = [part for part in partitions(session, space) if part.day < before]
    for part in old:
        drop_partition(session, space, part)
    return [part.size_bytes for part in old]
