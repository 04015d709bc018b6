"""The domain mean: what all of a corpus has in common, learned as it comes.

Taking it away spreads the scale, so that one threshold serves a general stream and one on a single
domain. In a replay of og2021 (one domain), ntrex and ecbplus with one calibration, mean B-cubed F1
is .807 with the general mean at its best threshold and .840 with the mean learned here, which is
what the corpus' own mean, known beforehand, reaches (.838).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from pgvector import HalfVector

from clustering.embedding.align import UNALIGNED, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from clustering.store.session import Session

# The general mean counts as this many articles of the user's own, so that a day on one topic does
# not take the topic away. 200 to 1,000 is a plateau (mean B-cubed .838 to .840), 2,000 gives .836.
PRIOR_ARTICLES = 1000
# A model without an alignment has no general mean to draw toward but zero, which is far off: of raw
# vectors of multilingual-e5-small, of which unrelated ones have a cosine of .79, a tenth of the mean left
# in is a cosine of .03 among all. It counts only as the first handful of articles.
UNALIGNED_PRIOR_ARTICLES = 5
# The running mean forgets: it stands for at most this many articles, two days of a large operator.
MEMORY_ARTICLES = 20_000
# Distance of the means (vectors of unit length are averaged) past which the mean is put in force
# anew. Half of it changes no figure, twice costs half a point of B-cubed on og2021.
REFIT_DISTANCE = 0.01
_BATCH = 1000


class Centre(Protocol):
    """Takes language offsets and the general mean out of raw vectors."""

    def __call__(
        self, raw: NDArray[np.float32], languages: Sequence[str], lede_chars: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return vectors of shape (n, dimension), float32, of any length."""
        ...


@dataclass(frozen=True, slots=True)
class DomainMean:
    """The mean in force, and the running mean that may replace it.

    Both are distances from the general mean of the space's alignment, which is the first domain mean.

    Attributes:
        version: number of the mean in force, from 1.
        mean: what is subtracted from centred vectors, of shape (dimension,), float64; 0 at first.
        running: mean of the centred vectors so far, of shape (dimension,), float64.
        articles: how many articles `running` stands for.
        prior_articles: how many articles the general mean counts as.
        fixed: whether the mean was fitted once and stays.
    """

    version: int
    mean: NDArray[np.float64]
    running: NDArray[np.float64]
    articles: float
    prior_articles: int = PRIOR_ARTICLES
    fixed: bool = False

    def take(self, centred: NDArray[np.float32]) -> DomainMean:
        """Return the state after n more centred vectors of shape (n, dimension)."""
        kept = min(self.articles, MEMORY_ARTICLES)
        total = kept + len(centred)
        running = (self.running * kept + centred.sum(axis=0, dtype=np.float64)) / total
        return replace(self, running=running, articles=total)

    def refitted(self) -> DomainMean:
        """Return the state with the running mean, drawn toward the general one (0), in force.

        It is the same state where the mean is fixed, or moves by no more than `REFIT_DISTANCE`.
        """
        weight = self.articles / (self.articles + self.prior_articles)
        candidate = weight * self.running
        if self.fixed or np.linalg.norm(candidate - self.mean) <= REFIT_DISTANCE:
            return self
        return replace(self, version=self.version + 1, mean=candidate)

    def align(self, centred: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return centred vectors less the mean in force, scaled to length 1; shape (n, dimension)."""
        return normalise((centred - self.mean).astype(np.float32))


def first_domain_mean(dimension: int, alignment: str) -> DomainMean:
    """Return the state before any article, of vectors of some length.

    Args:
        dimension: length of a vector.
        alignment: version of the language offsets and general mean.
    """
    nothing = np.zeros(dimension)
    return DomainMean(1, nothing, nothing, 0, prior_articles(alignment))


def prior_articles(alignment: str) -> int:
    """Return how many articles the general mean of an alignment counts as."""
    return UNALIGNED_PRIOR_ARTICLES if alignment == UNALIGNED else PRIOR_ARTICLES


def load_domain_mean(session: Session) -> DomainMean:
    """Return the domain mean of the session's space."""
    (row,) = session.rows("domain_mean", space=session.part("space"))
    return DomainMean(
        version=row.version,
        mean=np.array(row.mean),
        running=np.array(row.running_mean),
        articles=row.running_articles,
        prior_articles=prior_articles(row.alignment),
        fixed=row.fixed,
    )


def store_domain_mean(session: Session, before: DomainMean, after: DomainMean) -> None:
    """Store the running mean, and the mean in force where it is another version."""
    session.execute(
        "update_running_mean",
        space=session.part("space"),
        running_mean=after.running.tolist(),
        running_articles=after.articles,
    )
    if after.version != before.version:
        session.execute(
            "add_domain_mean",
            space=session.part("space"),
            version=after.version,
            mean=after.mean.tolist(),
            articles=after.articles,
        )


def realign(
    session: Session, centre: Centre, mean: DomainMean, since: datetime, lede_chars: int
) -> None:
    """Align again every stored vector from some event time on, without encoding anything."""
    for rows in raw_batches(session, since, lede_chars):
        raw = raw_rows(row.raw for row in rows)
        aligned = mean.align(
            centre(raw, [row.language for row in rows], [row.lede_chars for row in rows])
        )
        session.execute(
            "realign_vectors",
            article_ids=[row.article_id for row in rows],
            event_times=[row.event_time for row in rows],
            aligned=[HalfVector(vector).to_text() for vector in aligned],
            first=rows[0].event_time,
            last=rows[-1].event_time,
        )


def raw_batches(session: Session, since: datetime, lede_chars: int) -> Iterator[list[Any]]:
    """Yield the raw vectors of the session's space from some time on, in order of time."""
    after_time, after_id = since, -1
    while rows := session.rows(
        "raw_vectors",
        since=since,
        after_time=after_time,
        after_id=after_id,
        lede_chars=lede_chars,
        most=_BATCH,
    ):
        yield rows
        after_time, after_id = rows[-1].event_time, rows[-1].article_id


def raw_rows(vectors: Iterable[HalfVector]) -> NDArray[np.float32]:
    """Return n half vectors as rows, float32 (n, dimension)."""
    return np.stack([vector.to_numpy() for vector in vectors]).astype(np.float32)
