"""The cascade: cheapest check first, each stage sees only what the one before left."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from clustering.dedup.flags import LEAST_TITLE_OVERLAP
from clustering.dedup.near import LEAST_OVERLAP, Body, near_overlap
from clustering.graph import components

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from clustering.store.session import Session

EXACT_STAGES = ("entry", "url", "content")
NEAR_STAGE = "simhash"
STAGES = (*EXACT_STAGES, NEAR_STAGE)
# Of 64 bits. No twin with a tenth appended was further than 14 away, in any script; unrelated bodies
# are about 32 apart (docs/duplicates.md). The bands find the pairs, this spares reading their bodies.
RADIUS_BITS = 16
# Of a template's many variants only the nearest are compared with a new one, at .25 ms each. SimHash ranks
# them badly: among 300 match reports a copy's original was the 79th or nearer nine times in ten.
_MOST_COMPARED = 100


class Canonical(NamedTuple):
    """The article that another one stands for: its id and the time that ranks it."""

    canonical_id: int
    event_time: datetime


class Twin(NamedTuple):
    """A new article, another that it may copy, and how much of it the two share, 0 to 1."""

    article_id: int
    other_id: int
    score: float = 1.0


class Link(NamedTuple):
    """A decision of the cascade: one article stands for another."""

    article_id: int
    canonical_id: int
    stage: str
    score: float = 1.0


def fold(session: Session, article_ids: Sequence[int], run_id: int) -> list[Link]:
    """Fold new articles into the canonical ones they copy; returns the links made.

    What is left and has a title like another's is flagged for review.

    Args:
        session: inside a transaction.
        article_ids: ids of articles that were just added and are no duplicates yet.
        run_id: run that the links are recorded under.
    """
    left = list(article_ids)
    links: list[Link] = []
    for stage in STAGES:
        folded = {link.article_id: link for link in _fold_stage(session, stage, left, run_id)}
        links = [_moved(link, folded) for link in links] + list(folded.values())
        left = [article for article in left if article not in folded]
    if left:
        session.execute(
            "flag_titles", article_ids=left, threshold=LEAST_TITLE_OVERLAP, run_id=run_id
        )
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


def lead(
    new: Iterable[int], twins: Iterable[Twin], canonicals: Mapping[int, Canonical]
) -> dict[int, Twin]:
    """Decide which new articles are near copies of what; unlike `decide`, never through a third.

    A near copy of a near copy may be far from the first, so an article is only ever folded into one
    that it was compared with, and that stands for itself.

    Args:
        new: ids of the batch's articles.
        twins: verified pairs of a new article and one that is canonical or new.
        canonicals: the canonical article of every article named in `twins`, itself.

    Returns:
        For each duplicate the twin that it is folded into.
    """
    fresh = frozenset(new)
    rank = {a: (a in fresh, c.event_time, a) for a, c in canonicals.items()}
    chiefs: dict[int, list[Twin]] = defaultdict(list)
    for one, other, score in twins:
        later, earlier = sorted((one, other), key=lambda a: rank[a], reverse=True)
        chiefs[later].append(Twin(later, earlier, score))
    decided: dict[int, Twin] = {}
    for article in sorted(fresh & chiefs.keys(), key=lambda a: rank[a]):
        standing = [twin for twin in chiefs[article] if twin.other_id not in decided]
        if standing:
            decided[article] = min(standing, key=lambda twin: rank[twin.other_id])
    return decided


def _moved(link: Link, folded: Mapping[int, Link]) -> Link:
    """Let a link of an earlier stage lead on where its canonical article was folded since."""
    onward = folded.get(link.canonical_id)
    return link._replace(canonical_id=onward.canonical_id) if onward else link


def _fold_stage(
    session: Session, stage: str, article_ids: Sequence[int], run_id: int
) -> list[Link]:
    twins = _twins(session, stage, article_ids)
    if not twins:
        return []
    canonicals = _canonicals(session, {article for a, b, _ in twins for article in (a, b)})
    if stage == NEAR_STAGE:
        verified = _verified(session, twins, canonicals)
        decided = lead(article_ids, verified, canonicals)
        links = [Link(a, twin.other_id, stage, twin.score) for a, twin in decided.items()]
    else:
        pairs = [(a, b) for a, b, _ in twins]
        links = [Link(a, c, stage) for a, c in decide(article_ids, pairs, canonicals).items()]
    _link(session, links, run_id)
    return links


def _twins(session: Session, stage: str, article_ids: Sequence[int]) -> list[Twin]:
    """Return the pairs that share a key: in one place, whichever stage asks."""
    ids = list(article_ids)
    if stage == NEAR_STAGE:
        rows = session.rows(
            "simhash_twins", article_ids=ids, radius=RADIUS_BITS, most=_MOST_COMPARED
        )
    else:
        rows = session.rows(f"{stage}_twins", article_ids=ids)
    return [Twin(row.article_id, row.other_id) for row in rows]


def _canonicals(session: Session, article_ids: Iterable[int]) -> dict[int, Canonical]:
    rows = session.rows("canonicals", article_ids=sorted(article_ids))
    found = {row.article_id: Canonical(row.canonical_id, row.event_time) for row in rows}
    return {canonical.canonical_id: canonical for canonical in found.values()} | found


def _verified(
    session: Session, twins: Iterable[Twin], canonicals: Mapping[int, Canonical]
) -> list[Twin]:
    """Compare the bodies of new articles with those of the canonical ones behind their twins."""
    pairs = {tuple(sorted((a, canonicals[b].canonical_id))) for a, b, _ in twins}
    wanted = sorted({article for pair in pairs for article in pair})
    bodies = {row.id: Body(row.body) for row in session.rows("bodies", article_ids=wanted)}
    scored = ((a, b, near_overlap(bodies[a], bodies[b])) for a, b in sorted(pairs) if a != b)
    return [Twin(a, b, score) for a, b, score in scored if score is not None]


def _link(session: Session, links: Sequence[Link], run_id: int) -> None:
    if not links:
        return
    stage = links[0].stage
    duplicates = {
        "article_ids": [link.article_id for link in links],
        "canonical_ids": [link.canonical_id for link in links],
    }
    # What an earlier stage folded into one of these must not be left leading to a duplicate.
    session.execute("follow_canonicals", **duplicates)
    session.execute(
        "link_duplicates",
        stage=stage,
        scores=[link.score for link in links],
        threshold=LEAST_OVERLAP if stage == NEAR_STAGE else 1.0,
        run_id=run_id,
        **duplicates,
    )
    session.execute("spare_encoding", article_ids=duplicates["article_ids"])
