"""Why an article is in its story and in no other: the candidates and their scores, worked out anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from clustering.errors import NotFoundError
from clustering.stories.match import Candidate, in_window
from clustering.stories.placement import EDITOR
from clustering.stories.reading import find_story
from clustering.stories.scoring import StoryShape, hours

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clustering.store.session import Session
    from clustering.stories.calibration import Calibration
    from clustering.stories.scoring import MatchParts

_MOST_CANDIDATES = 10


class _Placed(NamedTuple):
    """An article, what it is folded into, and where a pass put it."""

    id: int
    title: str
    event_time: datetime
    language: str
    canonical_id: int | None
    stage: str | None
    story_id: int | None
    placed_by: str | None
    score: float | None
    threshold: float | None
    run_id: int | None
    editor: str | None


@dataclass(frozen=True, slots=True)
class WhyStory:
    """A story that an article could be in.

    Attributes:
        story_id: its id.
        headline: title of its headline article.
        size: number of its members, attached articles and duplicates not counted.
        hours_apart: between the article and the nearest end of the story; 0 inside of it.
        parts: mean cosine of the article and the story's members, itself left out, less penalties.
        score: what is left.
        threshold: what a member needs.
        own: whether the article is in it.
        reason: why it is in it, or is not.
    """

    story_id: int
    headline: str
    size: int
    hours_apart: float
    parts: MatchParts
    score: float
    threshold: float
    own: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Why:
    """Where an article is, and what speaks for and against the stories around it.

    Attributes:
        article_id: the article.
        title: its headline.
        event_time: its time.
        placement: where it is and by which decision, in words.
        candidates: stories near it, the best score first; as they are now, which may be more than
            they were when it was placed.
    """

    article_id: int
    title: str
    event_time: datetime
    placement: str
    candidates: tuple[WhyStory, ...]


def why(
    session: Session, calibration: Calibration, article_id: int, story_id: int | None = None
) -> Why:
    """Work out why an article is where it is.

    Args:
        session: bound to the space.
        calibration: thresholds in force.
        article_id: the article.
        story_id: a story to compare with besides those near it; an absorbed one stands for its
            survivor.

    Raises:
        NotFoundError: there is no such article or story.
    """
    found = session.records(_Placed, "why_article", article_id=article_id)
    if not found:
        raise NotFoundError(
            f"there is no article {article_id}; `stories show` names those of a story"
        )
    article = found[0]
    asked = find_story(session, story_id).id if story_id is not None else None
    rows = _rows(session, calibration, article, asked)
    around = [(_candidate(row, article, calibration), row.headline) for row in rows]
    parted = dict(session.rows("who_parted", article_id=article.id))
    ranked = sorted(around, key=lambda near: (-near[0].score(calibration), near[0].story.story_id))
    return Why(
        article.id,
        article.title,
        article.event_time,
        _placement(article),
        tuple(
            _explained(near, headline, article, calibration, parted.get(near.story.story_id))
            for near, headline in ranked
        ),
    )


def _rows(
    session: Session, calibration: Calibration, article: _Placed, asked: int | None
) -> Sequence[Any]:
    around = calibration.story_age_hours + calibration.story_gap_hours
    return session.rows(
        "why_candidates",
        article_id=article.id,
        event_time=article.event_time,
        language=article.language,
        story_id=asked or article.story_id,
        around=timedelta(hours=around),
        most=_MOST_CANDIDATES,
    )


def _candidate(
    row: Any,  # noqa: ANN401 - a row has the columns of its statement
    article: _Placed,
    calibration: Calibration,
) -> Candidate:
    story = StoryShape(*row[4:10])
    found = Candidate(row.article_id, row.event_time, row.language, row.similarity, story)
    averaged = min(story.size, calibration.centroid_members)
    if article.story_id != story.story_id or article.placed_by == "attach" or averaged < 2:
        return found
    # One of the averaged members is the article itself, with a cosine of 1.
    return replace(found, similarity=(averaged * row.similarity - 1) / (averaged - 1))


def _explained(
    candidate: Candidate,
    headline: str,
    article: _Placed,
    calibration: Calibration,
    parted_by: str | None,
) -> WhyStory:
    parts = candidate.parts(calibration)
    own = candidate.story.story_id == article.story_id
    return WhyStory(
        candidate.story.story_id,
        headline,
        candidate.story.size,
        hours(candidate.apart),
        parts,
        parts.score,
        calibration.match,
        own,
        "it is in this story" if own else _reason(candidate, calibration, parted_by),
    )


def _reason(candidate: Candidate, calibration: Calibration, parted_by: str | None) -> str:
    """Return why an article is not in a story, as both are now."""
    if parted_by is not None:
        return f"judged different from an article of it by {parted_by}"
    apart, score = hours(candidate.apart), candidate.score(calibration)
    if apart > calibration.story_gap_hours:
        return f"{apart:.1f} hours apart, at most {calibration.story_gap_hours:g} may be"
    if not in_window(candidate, calibration):
        age = hours(candidate.event_time - candidate.story.first_time)
        return f"the story was {age:.1f} hours old, at most {calibration.story_age_hours:g} may be"
    if score >= calibration.match:
        return "enough now: another scored higher, or the story was another one then"
    if score >= calibration.attach:
        return f"enough to be attached ({calibration.attach:g}), too little to be a member"
    return "scores too little"


def _placement(article: _Placed) -> str:
    if article.canonical_id is not None:
        return f"folded into article {article.canonical_id} by the stage {article.stage}"
    if article.placed_by is None:
        return "not encoded yet"
    if article.placed_by == "pending":
        return "waits for the next run"
    if article.placed_by == EDITOR:
        return f"in story {article.story_id}: put there by {article.editor}, run {article.run_id}"
    score = "no score" if article.score is None else f"score {article.score:.3f}"
    reached = f"{score}, needs {article.threshold:.3f}, run {article.run_id}"
    if article.story_id is None:
        return f"in no story: {reached}"
    return f"in story {article.story_id} by {article.placed_by}: {reached}"
