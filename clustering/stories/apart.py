"""What people hold apart: no pass brings two articles into one story that somebody judged different."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clustering.store.session import Session


@dataclass(frozen=True, slots=True)
class Apart:
    """What verdicts mean for some articles; a duplicate's verdict is one about its canonical article.

    Attributes:
        stories: pairs of an article and a story with one that it was judged different from.
        articles: pairs of articles that were judged different.
    """

    stories: frozenset[tuple[int, int]] = frozenset()
    articles: frozenset[frozenset[int]] = frozenset()


NOTHING_APART = Apart()


def any_verdict(session: Session) -> bool:
    """Tell whether anybody ever judged two articles different: where nobody did, nothing need be asked."""
    return bool(session.value("has_verdict"))


def held_apart(session: Session, article_ids: Iterable[int]) -> Apart:
    """Return what verdicts mean for some articles, none of them a duplicate."""
    rows = session.rows("judged_apart", article_ids=sorted(article_ids))
    return Apart(
        frozenset((row.article_id, row.story_id) for row in rows if row.story_id is not None),
        frozenset(frozenset((row.article_id, row.other_id)) for row in rows),
    )


def stories_apart(session: Session, story_ids: Iterable[int]) -> set[tuple[int, int]]:
    """Return the pairs of some stories that must not become one, the lower id first."""
    rows = session.rows("stories_apart", story_ids=sorted(story_ids))
    return {(row.a_id, row.b_id) for row in rows}
