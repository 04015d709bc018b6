"""Links from duplicates to their canonical articles: finding them, and taking them back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from clustering.store.session import Session

_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class DuplicateLink:
    """One article that stands for another.

    Attributes:
        id: the link's id.
        article_id: the duplicate.
        canonical_id: the article that it is shown beneath.
        folded_into: the article that the stage chose; another than `canonical_id` where that one was
            folded in turn.
        stage: stage of the cascade: `entry`, `url`, `content` or `simhash`.
        score: how alike the two are by that stage, 0 to 1.
        threshold: what the score had to reach.
        run_id: run that folded it.
        made_at: when it was folded.
        retracted_at: when the link was taken back; None while it holds.
        lapsed: whether an edit or a judgement ended it, which bars no stage from folding again.
        source: address of the duplicate's feed.
        title: the duplicate's headline.
        url: its address.
        event_time: its time.
        canonical_source: address of the canonical article's feed.
        canonical_title: its headline.
    """

    id: int
    article_id: int
    canonical_id: int
    folded_into: int
    stage: str
    score: float
    threshold: float
    run_id: int
    made_at: datetime
    retracted_at: datetime | None
    lapsed: bool
    source: str
    title: str
    url: str | None
    event_time: datetime
    canonical_source: str
    canonical_title: str


@dataclass(frozen=True, slots=True)
class LinkFilter:
    """Which links are meant; each condition that is given must hold.

    Attributes:
        link_ids: one of these.
        article_ids: the duplicate or its canonical article is one of these.
        stage: made by this stage.
        run_id: made by this run.
        since: made at this time or later.
        taken_back: links that were taken back instead of those that hold.
    """

    link_ids: Sequence[int] | None = None
    article_ids: Sequence[int] | None = None
    stage: str | None = None
    run_id: int | None = None
    since: datetime | None = None
    taken_back: bool = False

    def is_open(self) -> bool:
        """Tell whether no condition is given, so that every link is meant."""
        return self == LinkFilter(taken_back=self.taken_back)


def find_links(
    session: Session, wanted: LinkFilter, most: int | None = None
) -> list[DuplicateLink]:
    """Return the links that a filter means, the latest first; at most `most`, None for all."""
    return session.records(
        DuplicateLink,
        "duplicate_links",
        link_ids=None if wanted.link_ids is None else list(wanted.link_ids),
        article_ids=None if wanted.article_ids is None else list(wanted.article_ids),
        stage=wanted.stage,
        run_id=wanted.run_id,
        since=wanted.since,
        taken_back=wanted.taken_back,
        most=_NO_LIMIT if most is None else most,
    )


def retract(
    session: Session, links: Sequence[DuplicateLink], run_id: int, *, lapsed: bool
) -> list[int]:
    """Take links back: each duplicate is its own article again and waits to be encoded.

    What was folded into such a duplicate before it became one goes with it.

    Args:
        session: inside a transaction.
        links: links that hold.
        run_id: run that takes them back.
        lapsed: whether they merely hold no more; else their stages never make them again.

    Returns:
        ids of the canonical articles that lost something: their stories have sources to recount.
    """
    canonical_ids = sorted({link.canonical_id for link in links})
    session.execute(
        "retract_links", link_ids=[link.id for link in links], run_id=run_id, lapsed=lapsed
    )
    left = session.rows("links_into", canonical_ids=canonical_ids)
    into = {row.article_id: row.folded_into for row in left}
    moved = {
        row.article_id: root(row.article_id, into)
        for row in left
        if root(row.article_id, into) != row.canonical_id
    }
    session.execute("move_links", article_ids=list(moved), canonical_ids=list(moved.values()))
    session.execute("free_articles", article_ids=[link.article_id for link in links])
    return canonical_ids


def root(article_id: int, into: Mapping[int, int]) -> int:
    """Return where a chain of links leads from an article; `into` has what each was folded into."""
    return path(article_id, into)[-1]


def path(article_id: int, into: Mapping[int, int]) -> list[int]:
    """Return an article and what it leads through, to its canonical article."""
    found = [article_id]
    while found[-1] in into:
        found.append(into[found[-1]])
    return found


def link_between(earlier: int, later: int, into: Mapping[int, int]) -> int:
    """Return the duplicate whose link must go for two articles of one group to part.

    It is the one that leads through the other; where neither does, the later one.

    Args:
        earlier: an article.
        later: another of its group, which ranks after it.
        into: for each duplicate of the group what it was folded into.
    """
    return earlier if later in path(earlier, into) else later
