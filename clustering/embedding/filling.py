"""Filling a space beside the one that serves: nothing here places an article or touches a story."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering.embedding.backlog import CHUNK_ARTICLES, copy_vectors
from clustering.embedding.domain import load_domain_mean, raw_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from clustering.embedding.domain import Centre
    from clustering.embedding.sharing import Encode
    from clustering.embedding.space import Space
    from clustering.store.session import Session

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)
BEGINNING_OF_TIME = datetime(1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Fill:
    """What it takes to fill a space with the articles that the active space already has.

    Attributes:
        session: bound to the space, outside a transaction.
        encode: the space's model; not called for articles that a like space has raw vectors of.
        centre: what is taken out of raw vectors before the domain mean.
        like: spaces whose raw vectors are the same, as `like_spaces` gives them.
        lede_chars: how many characters of a body are encoded.
    """

    session: Session
    encode: Encode
    centre: Centre
    like: Sequence[Space]
    lede_chars: int

    def run(self, since: datetime, advance: Callable[[int], None]) -> int:
        """Write every vector that is missing, the latest articles first; returns their number.

        Each chunk is one transaction: a process killed at any moment loses at most one, and the
        next call goes on where it stopped. Articles that come meanwhile are written too.

        Args:
            since: earlier articles are left out.
            advance: called with the number of articles after each chunk.
        """
        total = 0
        while written := self._sweep(since, advance):
            total += written
        return total

    def _sweep(self, since: datetime, advance: Callable[[int], None]) -> int:
        """Go through the articles once, from the latest to the earliest."""
        total, before_time, before_id = 0, END_OF_TIME, 0
        while rows := self.session.rows(
            "articles_missing",
            since=since,
            before_time=before_time,
            before_id=before_id,
            lede_chars=self.lede_chars,
            most=CHUNK_ARTICLES,
        ):
            before_time, before_id = rows[-1].event_time, rows[-1].id
            self._write(rows[::-1])
            total += len(rows)
            advance(len(rows))
        return total

    def _write(self, rows: Sequence[Any]) -> None:
        raw = self._raw(rows)
        centred = self.centre(raw, [row.language for row in rows], [len(row.lede) for row in rows])
        with self.session.transaction():
            aligned = load_domain_mean(self.session).align(centred)
            copy_vectors(self.session, rows, raw, aligned)

    def _raw(self, rows: Sequence[Any]) -> NDArray[np.float32]:
        """Return raw vectors, float32 (n, dimension): stored ones where a like space has them."""
        known = self._stored(rows)
        unknown = [row for row in rows if row.id not in known]
        if unknown:
            fresh = self.encode([row.title for row in unknown], [row.lede for row in unknown])
            known |= {row.id: vector for row, vector in zip(unknown, fresh, strict=True)}
        return np.stack([known[row.id] for row in rows])

    def _stored(self, rows: Sequence[Any]) -> dict[int, NDArray[np.float32]]:
        known: dict[int, NDArray[np.float32]] = {}
        for space in self.like:
            wanted = [row for row in rows if row.id not in known]
            if wanted:
                known |= _stored_in(self.session, space, wanted)
        return known


def like_spaces(session: Session, spaces: Sequence[Space]) -> list[Space]:
    """Return which of some spaces have the same raw vectors as the session's own, the active one first."""
    names = [name for (name,) in session.rows("like_spaces", space=session.part("space"))]
    by_name = {space.name: space for space in spaces}
    return [by_name[name] for name in names if name in by_name]


def _stored_in(
    session: Session, space: Space, rows: Sequence[Any]
) -> dict[int, NDArray[np.float32]]:
    session.bind(raw_source=space.article_table)
    times = [row.event_time for row in rows]
    found = session.rows(
        "raw_of_articles",
        article_ids=[row.id for row in rows],
        event_times=times,
        revisions=[row.revision for row in rows],
        first=min(times),
        last=max(times),
    )
    if not found:
        return {}
    vectors = raw_rows(row.raw for row in found)
    return {row.article_id: vector for row, vector in zip(found, vectors, strict=True)}
