"""The cascade: cheapest check first, each stage sees only what the one before left."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clustering.dedup.flags import LEAST_TITLE_OVERLAP
from clustering.dedup.grouping import Canonical, decide
from clustering.dedup.near import LEAST_OVERLAP, Body, near_overlap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
    """Fold articles into the canonical ones they copy; returns the links made.

    A stored article that nothing rests on yet may become a duplicate of an earlier one among them.
    What is left and has a title like another's is flagged for review.

    Args:
        session: inside a transaction.
        article_ids: ids of articles that were just added or changed and are no duplicates.
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


def _moved(link: Link, folded: Mapping[int, Link]) -> Link:
    """Let a link of an earlier stage lead on where its canonical article was folded since."""
    onward = folded.get(link.canonical_id)
    return link._replace(canonical_id=onward.canonical_id) if onward else link


def still_copies(session: Session, stage: str, duplicate_ids: Sequence[int]) -> set[int]:
    """Return those of some duplicates that a stage, asked again, finds to copy their group."""
    twins = _twins(session, stage, duplicate_ids)
    canonicals = _canonicals(session, {article for a, b, _ in twins for article in (a, b)})
    if stage == NEAR_STAGE:
        twins = _verified(session, twins, canonicals)
    found = {a for twin in twins for a in twin[:2] if _in_one_group(twin, canonicals)}
    return found & set(duplicate_ids)


def _in_one_group(twin: Twin, canonicals: Mapping[int, Canonical]) -> bool:
    a, b, _ = twin
    return canonicals[a].canonical_id == canonicals[b].canonical_id


def _fold_stage(
    session: Session, stage: str, article_ids: Sequence[int], run_id: int
) -> list[Link]:
    twins = _twins(session, stage, article_ids)
    if not twins:
        return []
    canonicals = _canonicals(session, {article for a, b, _ in twins for article in (a, b)})
    near = stage == NEAR_STAGE
    if near:
        twins = _verified(session, twins, canonicals)
    scores = {frozenset(twin[:2]): twin.score for twin in twins} if near else {}
    apart = _held_apart(session, stage, canonicals)
    # A near copy of a near copy may be far from the first: only what was compared is folded.
    decided = decide([twin[:2] for twin in twins], canonicals, apart, chained=not near)
    links = [Link(a, c, stage, scores.get(frozenset((a, c)), 1.0)) for a, c in decided.items()]
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
    found = {
        row.article_id: Canonical(row.canonical_id, row.event_time, row.settled) for row in rows
    }
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


def _held_apart(
    session: Session, stage: str, canonicals: Mapping[int, Canonical]
) -> list[tuple[int, int]]:
    """Return the canonical articles whose groups a judgement, or an undone link of the stage, keeps apart."""
    ids = sorted({canonical.canonical_id for canonical in canonicals.values()})
    # Who undid a link between equal texts would undo one between texts that are nearly equal.
    stages = ["content", stage] if stage == NEAR_STAGE else [stage]
    return [tuple(row) for row in session.rows("held_apart", canonical_ids=ids, stages=stages)]


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
