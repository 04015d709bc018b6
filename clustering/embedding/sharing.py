"""Sharing the work of encoding between a run and any number of workers, on any number of machines.

A worker leases articles, encodes them and hands the vectors in. The run goes through the backlog in the
order of time as it would alone: it takes what was handed in, encodes what nobody has, and waits for what a
live worker has. So the domain mean learns in the same order, and the stories are those of one encoder.
A lease that runs out is taken over, as its worker may be dead.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID, uuid4

import numpy as np
from pgvector import HalfVector

from clustering.embedding.domain import raw_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from clustering.store.session import Session

# A worker's share: few enough for the run and the workers to finish a chunk together, and enough for
# batches of like length. Six seconds on two cores with the default model.
LEASE_ARTICLES = 256
# Longer than a share takes with the largest model on a slow machine; what a dead worker costs at most.
LEASE = timedelta(minutes=5)
# The one run has this number: what a killed run had leased, the next takes at once.
RUN = UUID(int=0)
POLL_SECONDS = 0.2


class Encode(Protocol):
    """Turns the texts of articles into raw vectors."""

    def __call__(self, titles: Sequence[str], ledes: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (n, dimension), float32."""
        ...


@dataclass(frozen=True, slots=True)
class Sharing:
    """One of those that encode.

    Attributes:
        session: bound to the space, outside a transaction.
        encode: the space's model.
        worker: who it is; the run is `RUN`.
        lease: how long nobody else gets its articles.
    """

    session: Session
    encode: Encode
    worker: UUID = field(default_factory=uuid4)
    lease: timedelta = LEASE

    def work(self, lede_chars: int) -> int:
        """Encode the next articles that nobody has, and hand them in; returns their number, 0 for none.

        What it leased is let go where encoding fails.

        Args:
            lede_chars: how many characters of a body are encoded.
        """
        rows = self.session.rows(
            "lease_due", lede_chars=lede_chars, most=LEASE_ARTICLES, **self._who()
        )
        if rows:
            try:
                self._hand_in(rows, self._encoded(rows))
            except BaseException:
                self.release()
                raise
        return len(rows)

    def release(self) -> None:
        """Let go of what is leased and not handed in."""
        self.session.execute("release_leases", worker=self.worker)

    def gather(
        self, rows: Sequence[Any], sleep: Callable[[float], None] = time.sleep
    ) -> NDArray[np.float32]:
        """Return the raw vectors of articles, float32 (n, dimension), whoever encodes them.

        Args:
            rows: n articles with `id`, `revision`, `title` and `lede`, in order of time.
            sleep: waits for other workers.
        """
        known = self._handed_in(rows)
        while missing := [row for row in rows if row.id not in known]:
            own = self._take(missing[:LEASE_ARTICLES]) or self._take(missing)
            if own:
                known |= dict(zip((row.id for row in own), self._encoded(own), strict=True))
            else:
                sleep(POLL_SECONDS)
            known |= self._handed_in([row for row in missing if row.id not in known])
        return np.stack([known[row.id] for row in rows])

    def end(self, article_ids: Sequence[int]) -> None:
        """Forget the leases of articles whose vectors were stored; in the transaction that stores them."""
        self.session.execute("end_leases", article_ids=article_ids)

    def forget_stale(self) -> None:
        """Forget the vectors of articles that were edited or folded before a run took them."""
        self.session.execute("forget_stale_encodings")

    def _take(self, rows: Sequence[Any]) -> list[Any]:
        """Lease what nobody has of some articles."""
        taken = self.session.rows("lease_articles", **_revisions(rows), **self._who())
        ids = {article_id for (article_id,) in taken}
        return [row for row in rows if row.id in ids]

    def _encoded(self, rows: Sequence[Any]) -> NDArray[np.float32]:
        return self.encode([row.title for row in rows], [row.lede for row in rows])

    def _hand_in(self, rows: Sequence[Any], raw: NDArray[np.float32]) -> None:
        texts = [HalfVector(vector).to_text() for vector in raw]
        ids = [row.id for row in rows]
        self.session.execute("store_raw", article_ids=ids, raw=texts, worker=self.worker)

    def _handed_in(self, rows: Sequence[Any]) -> dict[int, NDArray[np.float32]]:
        space = self.session.part("space")
        found = self.session.rows("encoded_raws", space=space, **_revisions(rows))
        if not found:
            return {}
        vectors = raw_rows(row.raw for row in found)
        return {row.article_id: vector for row, vector in zip(found, vectors, strict=True)}

    def _who(self) -> dict[str, object]:
        return {"space": self.session.part("space"), "worker": self.worker, "lease": self.lease}


def _revisions(rows: Sequence[Any]) -> dict[str, list[int]]:
    return {"article_ids": [row.id for row in rows], "revisions": [row.revision for row in rows]}
