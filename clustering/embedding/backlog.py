"""Encoding what waits to be encoded, in chunks that are written as they come."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgvector import HalfVector

from clustering.embedding.domain import (
    DomainMean,
    load_domain_mean,
    realign,
    store_domain_mean,
)
from clustering.embedding.partitions import make_partitions
from clustering.embedding.sharing import RUN, Sharing
from clustering.errors import StoriesError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime, timedelta

    import numpy as np
    from numpy.typing import NDArray

    from clustering.embedding.domain import Centre
    from clustering.embedding.sharing import Encode
    from clustering.store.session import Session

# A chunk is what a kill can lose and what is sorted by length at once: ten seconds on two cores.
CHUNK_ARTICLES = 1024
_COLUMN_TYPES = ("int8", "timestamptz", "int4", "halfvec", "halfvec")


@dataclass(frozen=True, slots=True)
class Backlog:
    """What it takes to encode articles into the active space.

    Attributes:
        session: bound to the space, outside a transaction.
        encode: the space's model.
        centre: the space's language offsets and general mean.
        lede_chars: how many characters of a body are encoded.
        live_span: how far before an article's time stories can still change.
        realigned: called, inside the transaction, with the time from which vectors were aligned anew.
    """

    session: Session
    encode: Encode
    centre: Centre
    lede_chars: int
    live_span: timedelta
    realigned: Callable[[datetime], None]

    def clear(self, as_of: datetime, now: datetime, advance: Callable[[int], None]) -> int:
        """Encode every waiting article and queue it for clustering; returns their number.

        Each chunk is one transaction, so that a process killed at any moment loses at most one.
        Workers (`sharing`) may have encoded some of it already, or do so meanwhile.

        Args:
            as_of: articles of later event times wait.
            now: live articles that were encoded in this hour of the clock wait too.
            advance: called with the number of articles after each chunk.
        """
        sharing = Sharing(self.session, self.encode, RUN)
        try:
            total = self._clear(sharing, as_of, now, advance)
        except BaseException:
            with suppress(
                StoriesError
            ):  # a broken connection lets go of nothing: the next run does
                sharing.release()
            raise
        sharing.forget_stale()
        return total

    def _clear(
        self, sharing: Sharing, as_of: datetime, now: datetime, advance: Callable[[int], None]
    ) -> int:
        total = 0
        while rows := self.session.rows(
            "articles_due", as_of=as_of, now=now, lede_chars=self.lede_chars, most=CHUNK_ARTICLES
        ):
            ids = [row.id for row in rows]
            raw = sharing.gather(rows)
            with self.session.transaction():
                self._store(rows, raw)
                self.session.execute("note_encoding", article_ids=ids, now=now)
                sharing.end(ids)
            total += len(rows)
            advance(len(rows))
        return total

    def _store(self, rows: Sequence[Any], raw: NDArray[np.float32]) -> None:
        ids, times = [row.id for row in rows], [row.event_time for row in rows]
        centred = self.centre(raw, [row.language for row in rows], [len(row.lede) for row in rows])
        aligned = self._learn(centred, times[0]).align(centred)
        copy_vectors(self.session, rows, raw, aligned)
        self.session.execute("queue_for_clustering", article_ids=ids, event_times=times)
        self.session.execute(
            "mark_encoded", article_ids=ids, revisions=[row.revision for row in rows]
        )

    def _learn(self, centred: NDArray[np.float32], first: datetime) -> DomainMean:
        """Take a chunk into the domain mean; where that moves it too far, align the live window anew."""
        before = load_domain_mean(self.session)
        after = before.take(centred).refitted()
        store_domain_mean(self.session, before, after)
        if after.version != before.version:
            since = first - self.live_span
            realign(self.session, self.centre, after, since, self.lede_chars)
            self.realigned(since)
        return after


def copy_vectors(
    session: Session, rows: Sequence[Any], raw: NDArray[np.float32], aligned: NDArray[np.float32]
) -> None:
    """Write vectors into the session's space in place of older ones; inside a transaction.

    Args:
        session: bound to the space.
        rows: n articles with `id`, `event_time` and `revision`, in order of time.
        raw: float32 (n, dimension).
        aligned: float32 (n, dimension).
    """
    ids, times = [row.id for row in rows], [row.event_time for row in rows]
    make_partitions(session, times)
    session.execute(
        "drop_old_vectors", article_ids=ids, event_times=times, first=times[0], last=times[-1]
    )
    session.copy("copy_vectors", _COLUMN_TYPES, _vector_rows(rows, raw, aligned))


def count_due(session: Session, as_of: datetime, now: datetime) -> int:
    """Return how many articles `Backlog.clear` would encode."""
    return int(session.value("count_due", as_of=as_of, now=now))


def _vector_rows(
    rows: Sequence[Any], raw: NDArray[np.float32], aligned: NDArray[np.float32]
) -> Iterator[tuple[object, ...]]:
    for row, own, searched in zip(rows, raw, aligned, strict=True):
        yield row.id, row.event_time, row.revision, HalfVector(own), HalfVector(searched)
