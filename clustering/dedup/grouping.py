"""Who stands for whom: from pairs that copy each other to duplicates and their canonical articles."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from clustering.graph import components

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime


class Canonical(NamedTuple):
    """The article that another one stands for.

    Attributes:
        canonical_id: its id.
        event_time: its time, which ranks it.
        settled: whether it was encoded. Then a story may rest on it, and it stays what it is.
    """

    canonical_id: int
    event_time: datetime
    settled: bool = False


def decide(
    twins: Iterable[tuple[int, int]],
    canonicals: Mapping[int, Canonical],
    apart: Iterable[tuple[int, int]] = (),
    *,
    chained: bool = True,
) -> dict[int, int]:
    """Decide which articles are duplicates, and of what.

    Settled articles stand; the others, the earliest first, then the lowest id, each join the earliest
    article that stands, that they are a copy of, and whose group nothing holds them apart from. Who
    finds none stands as well. So a settled article is never folded, and what arrived in two batches
    is folded as if it had come in one.

    Args:
        twins: pairs of articles of which one copies the other.
        canonicals: the canonical article of every article named in `twins`.
        apart: pairs of canonical articles whose groups must not become one, whatever comes between.
        chained: whether a copy of a copy is a copy. It is where the two share a key; it is not where
            they are merely near.

    Returns:
        canonical id by duplicate's id; both were canonical before.
    """
    edges = {(canonicals[a].canonical_id, canonicals[b].canonical_id) for a, b in twins}
    copies = _copies((edge for edge in edges if edge[0] != edge[1]), chained=chained)
    settled = {c.canonical_id for c in canonicals.values() if c.settled}
    rank = {
        c.canonical_id: (not c.settled, c.event_time, c.canonical_id) for c in canonicals.values()
    }
    barred = _neighbours(apart)
    groups: dict[int, set[int]] = {}
    decided: dict[int, int] = {}
    for article in sorted(copies, key=lambda a: rank[a]):
        standing = () if article in settled else groups.keys() & copies[article]
        open_to_it = (c for c in standing if not barred.get(article, set()) & groups[c])
        chief = min(open_to_it, key=lambda c: rank[c], default=article)
        groups.setdefault(chief, set()).add(article)
        if chief != article:
            decided[article] = chief
    return decided


def _copies(edges: Iterable[tuple[int, int]], *, chained: bool) -> Mapping[int, set[int]]:
    """Return for each article those that it copies or that copy it; the article itself may be among them."""
    if not chained:
        return _neighbours(edges)
    groups = map(set, components(edges))
    return {article: group for group in groups for article in group}


def _neighbours(edges: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    found: defaultdict[int, set[int]] = defaultdict(set)
    for a, b in edges:
        found[a].add(b)
        found[b].add(a)
    return dict(found)
