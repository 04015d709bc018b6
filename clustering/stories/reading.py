"""Reading stories: records for readers of the API and of the command line."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clustering.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from clustering.store.session import Session

_PAGE = 200
# Whole stories with the bodies of their articles in memory at once.
_EXPORT_PAGE = 50
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
_NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A copy that was folded into an article.

    Attributes:
        id: the copy's id in the database.
        source: address of its feed.
        guid: the feed's own id for it.
        url: its address.
        title: its headline.
        event_time: its time.
        stage: stage of the cascade that found it: `entry`, `url` or `content`.
        score: how alike the two are by that stage, 1 for an exact stage.
        run_id: run that folded it.
    """

    id: int
    source: str
    guid: str
    url: str | None
    title: str
    event_time: datetime
    stage: str
    score: float
    run_id: int


@dataclass(frozen=True, slots=True)
class StoryArticle:
    """An article of a story, with the decision that put it there.

    Attributes:
        id: its id in the database.
        source: address of its feed.
        guid: the feed's own id for it.
        url: its address.
        title: headline.
        body: plain text.
        author: byline.
        language: BCP 47 tag, `und` where unknown.
        published_at: time that the source states.
        event_time: time that clustering used.
        first_seen: when this engine first saw it.
        pass_name: pass that placed it: `match`, `discover` or `attach`; `editor` where a person did.
        score: its score against the story, or against its nearest article; None where average
            linkage alone, or an editor, holds it.
        threshold: what the score had to reach; None where an editor decided.
        nearest_id: id of the member nearest to it at that time; None where none was near.
        run_id: run that placed it.
        editor: who placed it; None where a pass did.
        placed_at: when that run began.
        duplicates: copies that were folded into it.
    """

    id: int
    source: str
    guid: str
    url: str | None
    title: str
    body: str
    author: str | None
    language: str
    published_at: datetime | None
    event_time: datetime
    first_seen: datetime
    pass_name: str
    score: float | None
    threshold: float | None
    nearest_id: int | None
    run_id: int
    editor: str | None
    placed_at: datetime
    duplicates: tuple[Duplicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Merged:
    """A story that became part of another: its old id, the score and threshold of the merge, and the run.

    Where an editor merged, `editor` names who, and there is neither score nor threshold.
    """

    story_id: int
    score: float | None
    threshold: float | None
    run_id: int
    editor: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """Articles about one event, in any language.

    Attributes:
        id: means this story for ever; after a merge the ids of both lead here.
        headline: title of the article nearest to the centroid.
        headline_id: id of that article.
        languages: BCP 47 tags of its articles, sorted.
        sources: number of feeds that tell it, those of duplicates counted.
        size: number of articles, duplicates not counted.
        first_time: event time of its first article.
        latest_time: event time of its latest article.
        event_id: the event that it is part of; None where it is in none.
        articles: in order of event time.
        absorbed: stories that became part of it.
        centroid: mean of its most recent articles in the aligned space, of shape (dimension,),
            float32, unit length; None for a story older than the active space, until
            `stories space backfill` has filled that space with its articles.
    """

    id: int
    headline: str
    headline_id: int
    languages: tuple[str, ...]
    sources: int
    size: int
    first_time: datetime
    latest_time: datetime
    event_id: int | None
    articles: tuple[StoryArticle, ...]
    absorbed: tuple[Merged, ...]
    centroid: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class StorySummary:
    """A story without its articles; attributes as of `Story`, and the score that it was sorted by."""

    id: int
    headline_id: int
    headline: str
    languages: list[str]
    sources: int
    size: int
    first_time: datetime
    latest_time: datetime
    event_id: int | None = None
    score: float | None = None


def list_stories(  # noqa: PLR0913 - one keyword for each thing a reader may ask
    session: Session,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    min_size: int = 2,
    most: int | None = None,
    sort: str | None = None,
) -> list[StorySummary]:
    """Return stories alive between two times, the latest first, or the highest by a score.

    Args:
        session: any.
        since: stories whose latest article is older are left out.
        until: stories whose first article is younger are left out.
        min_size: least number of articles.
        most: at most this many; None for all.
        sort: name of a score; stories without it are left out.
    """
    which = {
        "since": since,
        "until": until,
        "min_size": min_size,
        "most": _NO_LIMIT if most is None else most,
    }
    if sort is None:
        return session.records(StorySummary, "list_stories", **which)
    return session.records(StorySummary, "list_stories_by_score", score=sort, **which)


def find_stories(session: Session, story_ids: Sequence[int]) -> list[StorySummary]:
    """Return some stories, the latest first; those that were absorbed are left out."""
    return session.records(StorySummary, "stories_by_ids", story_ids=list(story_ids))


def pages_of_stories(
    session: Session,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    min_size: int = 2,
) -> Iterator[list[Story]]:
    """Yield whole stories alive between two times, the oldest first, some at a time.

    Args:
        session: in a transaction that sees one state of the database.
        since: stories whose latest article is older are left out.
        until: stories whose first article is younger are left out.
        min_size: least number of articles.
    """
    position = {"after_time": _BEGINNING, "after_id": 0}
    while page := session.records(
        StorySummary,
        "page_of_stories",
        since=since,
        until=until,
        min_size=min_size,
        most=_EXPORT_PAGE,
        **position,
    ):
        yield list(whole_stories(session, page))
        position = {"after_time": page[-1].latest_time, "after_id": page[-1].id}


def find_story(session: Session, story_id: int) -> StorySummary:
    """Return one story; the id of an absorbed one leads to its survivor.

    Raises:
        NotFoundError: no story ever had that id.
    """
    found = session.records(StorySummary, "story_by_id", story_id=story_id)
    if not found:
        raise NotFoundError(f"there is no story {story_id}; `stories list` shows those there are")
    return found[0]


def whole_stories(session: Session, summaries: Sequence[StorySummary]) -> Iterator[Story]:
    """Yield stories with their articles, duplicates and centroids, a page of them at a time."""
    for start in range(0, len(summaries), _PAGE):
        yield from _page(session, summaries[start : start + _PAGE])


def _page(session: Session, summaries: Sequence[StorySummary]) -> Iterator[Story]:
    ids = [summary.id for summary in summaries]
    articles = _articles(session, ids)
    absorbed = _absorbed(session, ids)
    centroids = _centroids(session, ids)
    for summary in summaries:
        yield Story(
            id=summary.id,
            headline=summary.headline,
            headline_id=summary.headline_id,
            languages=tuple(summary.languages),
            sources=summary.sources,
            size=summary.size,
            first_time=summary.first_time,
            latest_time=summary.latest_time,
            event_id=summary.event_id,
            articles=tuple(articles[summary.id]),
            absorbed=tuple(absorbed[summary.id]),
            centroid=centroids.get(summary.id),
        )


def _centroids(session: Session, story_ids: list[int]) -> dict[int, NDArray[np.float32]]:
    rows = session.rows("story_centroids", story_ids=story_ids)
    return {row.story_id: row.centroid.to_numpy().astype("float32") for row in rows}


def _articles(session: Session, story_ids: list[int]) -> dict[int, list[StoryArticle]]:
    copies: defaultdict[int, list[Duplicate]] = defaultdict(list)
    for canonical_id, *values in session.rows("story_duplicates", story_ids=story_ids):
        copies[canonical_id].append(Duplicate(*values))
    found: defaultdict[int, list[StoryArticle]] = defaultdict(list)
    for story_id, *values in session.rows("story_members", story_ids=story_ids):
        article = StoryArticle(*values)
        found[story_id].append(replace(article, duplicates=tuple(copies[article.id])))
    return found


def _absorbed(session: Session, story_ids: list[int]) -> dict[int, list[Merged]]:
    found: defaultdict[int, list[Merged]] = defaultdict(list)
    for survivor_id, *values in session.rows("absorbed_stories", story_ids=story_ids):
        found[survivor_id].append(Merged(*values))
    return found
