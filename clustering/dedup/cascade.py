"""The cascade: cheapest check first, each stage sees only what the one before left."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clustering.graph import components

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from clustering.store.session import Session

STAGES = ("entry", "url", "content")


class Canonical(NamedTuple):
    """The article that another one stands for: its id and the time that ranks it."""

    canonical_id: int
    event_time: datetime


class Link(NamedTuple):
    """A decision of the cascade: one article stands for another."""

    article_id: int
    canonical_id: int
    stage: str


def fold(session: Session, article_ids: Sequence[int], run_id: int) -> list[Link]:
    """Fold new articles into the canonical ones they copy; returns the links made.

    Args:
        session: inside a transaction.
        article_ids: ids of articles that were just added and are no duplicates yet.
        run_id: run that the links are recorded under.
    """
    left = list(article_ids)
    links: list[Link] = []
    for stage in STAGES:
        folded = _fold_stage(session, stage, left, run_id)
        links = [
            link._replace(canonical_id=folded.get(link.canonical_id, link.canonical_id))
            for link in links
        ]
        links += [Link(article, canonical, stage) for article, canonical in folded.items()]
        left = [article for article in left if article not in folded]
    return links


def decide(
    new: Iterable[int],
    twins: Iterable[tuple[int, int]],
    canonicals: Mapping[int, Canonical],
) -> dict[int, int]:
    """Decide which new articles are duplicates, and of what.

    Articles that share a key form a group. An article that stood there before the batch stays
    canonical, since stories may rest on it; among new ones it is the earliest, then the lowest id.

    Args:
        new: ids of the batch's articles.
        twins: pairs of a new article and any other that shares its key.
        canonicals: the canonical article of every article named in `twins`.

    Returns:
        canonical id by duplicate's id.
    """
    fresh = frozenset(new)
    pairs = [(a, canonicals[b].canonical_id) for a, b in twins if canonicals[b].canonical_id != a]
    ranks = {c.canonical_id: c for c in canonicals.values()}
    decided: dict[int, int] = {}
    for group in components(pairs):
        chief = min(group, key=lambda a: (a in fresh, ranks[a].event_time, a))
        decided |= {member: chief for member in group if member in fresh and member != chief}
    return decided


def _fold_stage(
    session: Session, stage: str, article_ids: Sequence[int], run_id: int
) -> dict[int, int]:
    twins = [
        (row.article_id, row.other_id)
        for row in session.rows(f"{stage}_twins", article_ids=list(article_ids))
    ]
    if not twins:
        return {}
    named = sorted({article for pair in twins for article in pair})
    canonicals = {
        row.article_id: Canonical(row.canonical_id, row.event_time)
        for row in session.rows("canonicals", article_ids=named)
    }
    decided = decide(article_ids, twins, canonicals)
    if decided:
        parameters = {"article_ids": list(decided), "canonical_ids": list(decided.values())}
        # What an earlier stage folded into one of these must not be left leading to a duplicate.
        session.execute("follow_canonicals", **parameters)
        session.execute("link_duplicates", stage=stage, run_id=run_id, **parameters)
        session.execute("spare_encoding", article_ids=list(decided))
    return decided
