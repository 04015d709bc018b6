"""The review queue and what people decide: whether two articles report one event.

`same` is a label; it folds nothing, since two reports of one event are both worth having. `different`
holds the two apart at every stage and through third articles, for what reports another event can be
no copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clustering.dedup.links import LinkFilter, find_links, link_between, retract
from clustering.errors import InvalidInput, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from clustering.store.session import Session

Verdict = Literal["same", "different"]
VERDICTS: tuple[Verdict, ...] = ("same", "different")
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class FlaggedArticle:
    """An article of a flagged pair: its id, its feed's address, and what a person needs to decide."""

    id: int
    source: str
    title: str
    url: str | None
    event_time: datetime


@dataclass(frozen=True, slots=True)
class FlaggedPair:
    """Two articles that look alike to a stage that never folds.

    Attributes:
        a: the one of the lower id.
        b: the other.
        stage: stage that flagged them: `title`.
        score: how alike the two are by that stage, 0 to 1.
        threshold: what the score had to reach.
        run_id: run that flagged them.
        made_at: when it did.
        verdict: `same` or `different`; None while nobody has decided.
        judged_by: who decided.
        judged_at: when.
    """

    a: FlaggedArticle
    b: FlaggedArticle
    stage: str
    score: float
    threshold: float
    run_id: int
    made_at: datetime
    verdict: Verdict | None
    judged_by: str | None
    judged_at: datetime | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What somebody decided about two articles, in either order: whether they report one event."""

    a_id: int
    b_id: int
    verdict: Verdict
    by: str


def queued_pairs(
    session: Session, *, decided: bool = False, most: int | None = None
) -> list[FlaggedPair]:
    """Return pairs of the review queue, the latest first.

    Args:
        session: any.
        decided: those that somebody decided, instead of those that wait.
        most: at most so many; None for all.
    """
    rows = session.rows("review_queue", decided=decided, most=_NO_LIMIT if most is None else most)
    return [
        FlaggedPair(FlaggedArticle(*row[:5]), FlaggedArticle(*row[5:10]), *row[10:]) for row in rows
    ]


def judge(session: Session, judgement: Judgement, run_id: Callable[[], int]) -> list[int]:
    """Record a verdict over an earlier one; `different` also parts the two where they are folded together.

    Args:
        session: inside a transaction.
        judgement: what somebody decided.
        run_id: gives the run that a link is taken back under, where one is.

    Returns:
        ids of the canonical articles that lost a duplicate.

    Raises:
        InvalidInput: the two are one, the verdict is none, or nobody is named.
        NotFoundError: there is no such article.
    """
    _check(session, judgement)
    a_id, b_id = sorted((judgement.a_id, judgement.b_id))
    session.execute(
        "judge", a_id=a_id, b_id=b_id, verdict=judgement.verdict, judged_by=judgement.by
    )
    return _part(session, a_id, b_id, run_id) if judgement.verdict == "different" else []


def _check(session: Session, judgement: Judgement) -> None:
    a_id, b_id = judgement.a_id, judgement.b_id
    if a_id == b_id:
        raise InvalidInput(f"a verdict takes two articles; {a_id} is named twice")
    if judgement.verdict not in VERDICTS:
        raise InvalidInput(f"{judgement.verdict!r} is no verdict; say same or different")
    if not judgement.by.strip():
        raise InvalidInput("a verdict needs the name of who gives it")
    known = {row.article_id for row in session.rows("ranks", article_ids=[a_id, b_id])}
    for article in (a_id, b_id):
        if article not in known:
            raise NotFoundError(
                f"there is no article {article}; `stories review list` and `stories show` name them"
            )


def _part(session: Session, a_id: int, b_id: int, run_id: Callable[[], int]) -> list[int]:
    rows = {row.article_id: row for row in session.rows("ranks", article_ids=[a_id, b_id])}
    if rows[a_id].canonical_id != rows[b_id].canonical_id:
        return []
    earlier, later = sorted(rows, key=lambda article: (rows[article].event_time, article))
    canonical_id = rows[a_id].canonical_id
    links = find_links(session, LinkFilter(article_ids=[canonical_id]))
    leaves = link_between(earlier, later, {link.article_id: link.folded_into for link in links})
    gone = [link for link in links if link.article_id == leaves]
    return retract(session, gone, run_id(), lapsed=True)
