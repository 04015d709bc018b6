"""Pass 3: live stories that are each other's nearest become one. Pure decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.stories.scoring import StoryShape, hours, merge_score

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

    from clustering.stories.calibration import Calibration


@dataclass(frozen=True, slots=True)
class StoryPair:
    """Two live stories near each other, with the cosine of their centroids."""

    a: StoryShape
    b: StoryShape
    similarity: float


@dataclass(frozen=True, slots=True)
class Merge:
    """One story becomes part of another; the survivor is the one with the lower id."""

    survivor_id: int
    absorbed_id: int
    score: float


def close_stories(pairs: Iterable[StoryPair], calibration: Calibration) -> set[int]:
    """Return the stories of the pairs that score at least `merge`: those that could merge."""
    close = (
        ids for ids, score in _scores(pairs, calibration).items() if score >= calibration.merge
    )
    return {story for ids in close for story in ids}


def merges(
    pairs: Iterable[StoryPair],
    calibration: Calibration,
    apart: AbstractSet[tuple[int, int]] = frozenset(),
) -> list[Merge]:
    """Return the merges of one round: pairs that are mutually nearest and score at least `merge`.

    Args:
        pairs: the nearest stories of each story that could take part, in any order.
        calibration: gives the threshold, the penalties and the longest span of a story.
        apart: pairs of stories, the lower id first, that must not become one.
    """
    found = _scores(pairs, calibration)
    scores = {ids: score for ids, score in found.items() if ids not in apart}
    nearest = _nearest(scores)
    return [
        Merge(a, b, score)
        for (a, b), score in sorted(scores.items())
        if score >= calibration.merge and nearest[a] == b and nearest[b] == a
    ]


def _scores(pairs: Iterable[StoryPair], calibration: Calibration) -> dict[tuple[int, int], float]:
    return {
        _ids(pair): merge_score(pair.similarity, pair.a, pair.b, calibration)
        for pair in pairs
        if _span_hours(pair) <= calibration.story_age_hours + calibration.story_gap_hours
    }


def _ids(pair: StoryPair) -> tuple[int, int]:
    a, b = pair.a.story_id, pair.b.story_id
    return min(a, b), max(a, b)


def _span_hours(pair: StoryPair) -> float:
    latest = max(pair.a.latest_time, pair.b.latest_time)
    return hours(latest - min(pair.a.first_time, pair.b.first_time))


def _nearest(scores: dict[tuple[int, int], float]) -> dict[int, int]:
    """Return each story's nearest; among equals the older one."""
    best: dict[int, tuple[float, int]] = {}
    for (a, b), score in scores.items():
        for story, other in ((a, b), (b, a)):
            best[story] = max(best.get(story, (-2.0, 0)), (score, -other))
    return {story: -other for story, (_, other) in best.items()}
