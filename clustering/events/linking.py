"""Which clusters of stories become one event: pure decisions.

Average linkage by reciprocal nearest neighbours (Murtagh 1983): two clusters that are each other's
nearest can be joined in any order, and what comes of it is what joining the nearest pair of all, again
and again, would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class ClusterPair:
    """Two clusters near each other: events by their ids, stories in no event by their negative ids.

    Attributes:
        a: a cluster.
        b: another.
        score: mean over pairs of their stories, cosine of centroids less the time penalty.
        a_story: the story of `a` nearest to one of `b`.
        b_story: that story of `b`.
    """

    a: int
    b: int
    score: float
    a_story: int
    b_story: int


def agreements(pairs: Iterable[ClusterPair], threshold: float) -> list[ClusterPair]:
    """Return the pairs that are mutually nearest and score at least `threshold`, the oldest stories first.

    Args:
        pairs: the nearest clusters of each cluster that could take part, in any order; a pair may
            come from both sides.
        threshold: least score of two clusters to be one event.
    """
    known = {(pair.a, pair.b): pair for pair in map(_ordered, pairs)}
    nearest = _nearest(known.values())
    return [
        pair
        for (a, b), pair in sorted(known.items(), reverse=True)
        if pair.score >= threshold and nearest[a] == b and nearest[b] == a
    ]


def _ordered(pair: ClusterPair) -> ClusterPair:
    if pair.a < pair.b:
        return pair
    return ClusterPair(pair.b, pair.a, pair.score, pair.b_story, pair.a_story)


def _nearest(pairs: Iterable[ClusterPair]) -> dict[int, int]:
    """Return each cluster's nearest; among equals the one with the lower number."""
    best: dict[int, tuple[float, int]] = {}
    for pair in pairs:
        for one, other in ((pair.a, pair.b), (pair.b, pair.a)):
            best[one] = max(best.get(one, (-9.0, 0)), (pair.score, -other))
    return {cluster: -other for cluster, (_, other) in best.items()}
