"""Pass 1: articles join live stories. Pure decisions on what the database found near."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations
from typing import TYPE_CHECKING

from clustering.stories.placement import ATTACH, Placement
from clustering.stories.scoring import MatchParts, StoryShape, hours, match_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from clustering.stories.calibration import Calibration


@dataclass(frozen=True, slots=True)
class Candidate:
    """A live story near an article.

    Attributes:
        article_id: the article.
        event_time: its time.
        language: its language, without script or region.
        similarity: mean cosine of the article's aligned vector and those that the story's centroid
            averages. Not the cosine to the centroid: that grows as a story gets looser, so that a
            wrong article draws in the next (mean B-cubed .848 against .870 over four corpora).
        story: the story.
    """

    article_id: int
    event_time: datetime
    language: str
    similarity: float
    story: StoryShape

    @property
    def apart(self) -> timedelta:
        """Time between the article and the story; none where it falls inside the story's extent."""
        before = self.story.first_time - self.event_time
        after = self.event_time - self.story.latest_time
        return max(before, after, timedelta())

    def parts(self, calibration: Calibration) -> MatchParts:
        """Return what the score is made of."""
        return match_parts(self.similarity, self.apart, self.language, self.story, calibration)

    def score(self, calibration: Calibration) -> float:
        """Return what the thresholds are held against."""
        return self.parts(calibration).score


@dataclass(frozen=True, slots=True)
class Match:
    """The story that scores best for an article, whether or not the score is enough."""

    story_id: int
    score: float


def in_window(candidate: Candidate, calibration: Calibration) -> bool:
    """Tell whether an article is near enough in time to join a story."""
    age = hours(candidate.event_time - candidate.story.first_time)
    near = hours(candidate.apart) <= calibration.story_gap_hours
    return near and age <= calibration.story_age_hours


def best_matches(
    candidates: Iterable[Candidate],
    calibration: Calibration,
    barred: AbstractSet[tuple[int, int]] = frozenset(),
) -> dict[int, Match]:
    """Return the best story for each article that has one in its window.

    Ties go to the older story, so that the order of the candidates never matters.

    Args:
        candidates: what was found near, in any order.
        calibration: gives the windows and the penalties.
        barred: pairs of an article and a story that it must not join.
    """
    best: dict[int, Match] = {}
    for candidate in candidates:
        pair = candidate.article_id, candidate.story.story_id
        if pair not in barred and in_window(candidate, calibration):
            match = Match(candidate.story.story_id, candidate.score(calibration))
            rival = best.get(candidate.article_id)
            if rival is None or (match.score, -match.story_id) > (rival.score, -rival.story_id):
                best[candidate.article_id] = match
    return best


def settled_matches(
    candidates: Sequence[Candidate],
    calibration: Calibration,
    barred: AbstractSet[tuple[int, int]],
    apart: AbstractSet[frozenset[int]],
) -> dict[int, Match]:
    """Return the best story for each article, no two that somebody judged different in one.

    Where two of them want the same story, the one that scores less, or of equals the later one,
    goes to its next best.

    Args:
        candidates: what was found near, in any order.
        calibration: gives the threshold `attach`, the windows and the penalties.
        barred: pairs of an article and a story that it must not join.
        apart: pairs of articles that were judged different.
    """
    shut = set(barred)
    while True:
        best = best_matches(candidates, calibration, shut)
        clashes = _clashes(best, calibration.attach, apart) if apart else set()
        if not clashes:
            return best
        shut |= clashes


def _clashes(
    best: Mapping[int, Match], threshold: float, apart: AbstractSet[frozenset[int]]
) -> set[tuple[int, int]]:
    joining = [article for article, match in best.items() if match.score >= threshold]
    joining.sort(key=lambda article: (-best[article].score, article))
    return {
        (loser, best[loser].story_id)
        for winner, loser in combinations(joining, 2)
        if best[winner].story_id == best[loser].story_id and frozenset((winner, loser)) in apart
    }


def placements(
    article_ids: Iterable[int],
    best: Mapping[int, Match],
    nearest: Mapping[tuple[int, int], int],
    calibration: Calibration,
) -> list[Placement]:
    """Decide for each article whether it joins its best story, is attached to it, or neither.

    Most articles that just miss `match` belong to their best story after all, and those that do not
    would draw in others, had they a part in its centroid. So they are shown in it without one.

    Args:
        article_ids: the articles of the slice.
        best: the best story by article id.
        nearest: the nearest member by article id and story id, where one is among its neighbours.
        calibration: gives the thresholds `match` and `attach`.

    Returns:
        one placement an article; `story_id` is None where no story scores enough.
    """
    return [_place(article, best.get(article), nearest, calibration) for article in article_ids]


def _place(
    article: int,
    match: Match | None,
    nearest: Mapping[tuple[int, int], int],
    calibration: Calibration,
) -> Placement:
    if match is None:
        return Placement(article, None, "none", None, calibration.attach, None)
    near = nearest.get((article, match.story_id))
    for name, threshold in (("match", calibration.match), (ATTACH, calibration.attach)):
        if match.score >= threshold:
            return Placement(article, match.story_id, name, match.score, threshold, near)
    return Placement(article, None, "none", match.score, calibration.attach, near)
