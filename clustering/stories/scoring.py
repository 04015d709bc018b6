"""Scores of pairs: a cosine less what time, language, size and cohesion speak against it. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import log, log1p
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from clustering.stories.calibration import Calibration

# How many members a story must have before its own cohesion counts as much as the prior.
PRIOR_MEMBERS = 3


@dataclass(frozen=True, slots=True)
class StoryShape:
    """What the passes need to know of a live story.

    Attributes:
        story_id: its id.
        first_time: event time of its first article.
        latest_time: event time of its latest article.
        size: number of its articles, duplicates not counted.
        cohesion: mean cosine of two of the members that its centroid averages.
        languages: share of each language, without script or region, among those members.
    """

    story_id: int
    first_time: datetime
    latest_time: datetime
    size: int
    cohesion: float
    languages: Mapping[str, float]


def hours(span: timedelta) -> float:
    """Return a span of time in hours."""
    return span.total_seconds() / 3600


def pair_score(
    similarity: float, apart: timedelta, same_language: float, calibration: Calibration
) -> float:
    """Return the score of two articles, or of two sets of them.

    A logistic fit of "same story" on cosine and log(1 + hours) over og2021 gives the form of the
    time penalty: average precision of candidate pairs rises from .782 to .824. Two articles of one
    language are nearer than two of different ones whatever they tell: the cosine at which half of
    the pairs within 24 hours tell one story is .44 against .37 on og2021, .48 against .35 on ntrex.

    Args:
        similarity: cosine of their aligned vectors, a mean over the pairs for sets.
        apart: time between them, of either sign.
        same_language: share of the pairs that are of one language, 0 to 1.
        calibration: gives the penalties.
    """
    late = calibration.time_penalty * log1p(abs(hours(apart)))
    return similarity - late - calibration.language_penalty * same_language


class MatchParts(NamedTuple):
    """What the score of an article and a story is made of: a mean cosine, and what is taken off it."""

    similarity: float
    time_penalty: float
    language_penalty: float
    cohesion_penalty: float

    @property
    def score(self) -> float:
        """What the thresholds are held against."""
        late = self.similarity - self.time_penalty
        return late - self.language_penalty - self.cohesion_penalty


def match_parts(
    similarity: float, apart: timedelta, language: str, story: StoryShape, calibration: Calibration
) -> MatchParts:
    """Return what the score of an article and a story is made of.

    What is near for a story that hangs loosely is far for a tight one, so cohesion speaks against
    a match. Its share of the gain is measured in docs/quality.md.

    Args:
        similarity: mean cosine of the article and the members that the story's centroid averages.
        apart: time between the article and the story.
        language: the article's, without script or region.
        story: the story.
        calibration: gives the penalties.
    """
    return MatchParts(
        similarity,
        calibration.time_penalty * log1p(abs(hours(apart))),
        calibration.language_penalty * story.languages.get(language, 0),
        calibration.match_cohesion_penalty * _excess(story, calibration),
    )


def merge_score(similarity: float, a: StoryShape, b: StoryShape, calibration: Calibration) -> float:
    """Return the score of two stories.

    Two penalties hold look-alike events apart and let a sprawling story collect its fragments.
    A centroid of many members has little noise, so that two large stories about alike events lie
    closer than a story and its own fragment: the smaller size speaks against a merge. And what is
    close for stories that hang loosely is far for a tight one: cohesion speaks against it too.
    Mean B-cubed F1 over og2021, ntrex and ecbplus in replay: .804 without the size penalty, .823
    without the cohesion penalty, .839 with both (docs/quality.md).

    Args:
        similarity: cosine of their centroids.
        a: one story.
        b: the other.
        calibration: gives the penalties.
    """
    apart = max(a.first_time - b.latest_time, b.first_time - a.latest_time, timedelta())
    score = pair_score(similarity, apart, _same_language(a, b), calibration)
    tightest = max(_excess(a, calibration), _excess(b, calibration))
    return (
        score
        - calibration.merge_size_penalty * log(min(a.size, b.size))
        - calibration.merge_cohesion_penalty * tightest
    )


def settled_cohesion(story: StoryShape, calibration: Calibration) -> float:
    """Return a story's mean score of two members, drawn toward the prior, the more so the fewer they are.

    The first members were chosen for being alike, so that their own cohesion says too much.
    """
    members = min(story.size, calibration.centroid_members)
    alike = _pairs_of_one_language(story, members)
    cohesion = story.cohesion - calibration.language_penalty * alike
    weighted = (members - 1) * cohesion + PRIOR_MEMBERS * calibration.cohesion_prior
    return weighted / (members - 1 + PRIOR_MEMBERS)


def _excess(story: StoryShape, calibration: Calibration) -> float:
    return settled_cohesion(story, calibration) - calibration.cohesion_prior


def _same_language(a: StoryShape, b: StoryShape) -> float:
    """Return the share of pairs, one article from each story, that are of one language."""
    return sum(share * b.languages.get(language, 0) for language, share in a.languages.items())


def _pairs_of_one_language(story: StoryShape, members: int) -> float:
    """Return the share of pairs of two different members that are of one language."""
    if members < 2:
        return 0.0
    with_itself = sum(share * share for share in story.languages.values())
    return max(0.0, (members * with_itself - 1) / (members - 1))
