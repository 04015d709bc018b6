from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.stories.calibration import Calibration
from clustering.stories.scoring import (
    StoryShape,
    hours,
    merge_score,
    pair_score,
    settled_cohesion,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
CALIBRATION = Calibration(
    match=0.5,
    link=0.5,
    merge=0.5,
    story_gap_hours=24,
    story_age_hours=72,
    centroid_members=10,
    neighbours=20,
    time_penalty=0.05,
    chain_slack=0.05,
    size_penalty=0.03,
    cohesion_penalty=0.5,
    cohesion_prior=0.6,
)


def shape(first=0.0, latest=0.0, size=1, cohesion=0.6, story_id=1) -> StoryShape:
    return StoryShape(story_id, START + first * HOUR, START + latest * HOUR, size, cohesion)


def test_hours_of_a_span():
    assert hours(timedelta(days=1, minutes=30)) == 24.5
    assert hours(-HOUR) == -1


def test_articles_of_one_time_lose_nothing():
    assert pair_score(0.8, timedelta(), CALIBRATION) == 0.8


def test_the_time_penalty_is_per_unit_of_log_one_plus_hours():
    assert pair_score(0.8, 9 * HOUR, CALIBRATION) == pytest.approx(0.8 - 0.05 * log(10))
    assert pair_score(0.8, -9 * HOUR, CALIBRATION) == pair_score(0.8, 9 * HOUR, CALIBRATION)


def test_stories_that_overlap_in_time_lose_nothing_to_it():
    one, other = shape(0, 10), shape(5, 30)
    assert merge_score(0.7, one, other, CALIBRATION) == pytest.approx(0.7)


def test_stories_apart_lose_by_the_time_between_their_ends():
    one, other = shape(0, 10), shape(19, 30)
    expected = 0.7 - 0.05 * log(10)
    assert merge_score(0.7, one, other, CALIBRATION) == pytest.approx(expected)


def test_the_smaller_storys_size_speaks_against_a_merge():
    large, small = shape(size=100), shape(size=4)
    expected = 0.7 - 0.03 * log(4)
    assert merge_score(0.7, large, small, CALIBRATION) == pytest.approx(expected)


def test_the_tighter_storys_cohesion_speaks_against_a_merge():
    tight, loose = shape(size=4, cohesion=0.9), shape(size=4, cohesion=0.3)
    settled = (3 * 0.9 + 3 * 0.6) / 6
    expected = 0.7 - 0.03 * log(4) - 0.5 * (settled - 0.6)
    assert merge_score(0.7, tight, loose, CALIBRATION) == pytest.approx(expected)


def test_loose_stories_are_merged_more_easily():
    loose = shape(size=4, cohesion=0.2)
    assert merge_score(0.7, loose, loose, CALIBRATION) > 0.7 - 0.03 * log(4)


def test_a_single_article_has_the_priors_cohesion():
    assert settled_cohesion(shape(size=1, cohesion=1.0), CALIBRATION) == pytest.approx(0.6)


def test_no_more_members_count_than_the_centroid_averages():
    few = replace(CALIBRATION, centroid_members=4)
    story = shape(size=1000, cohesion=0.9)
    assert settled_cohesion(story, few) == pytest.approx((3 * 0.9 + 3 * 0.6) / 6)
    assert settled_cohesion(story, CALIBRATION) == pytest.approx((9 * 0.9 + 3 * 0.6) / 12)


SHAPES = st.builds(
    shape,
    first=st.floats(-100, 0),
    latest=st.floats(0, 100),
    size=st.integers(1, 500),
    cohesion=st.floats(-1, 1),
)


@given(st.floats(-1, 1), SHAPES, SHAPES)
def test_a_merge_scores_the_same_from_both_sides(similarity, a, b):
    assert merge_score(similarity, a, b, CALIBRATION) == merge_score(similarity, b, a, CALIBRATION)


@given(st.floats(-1, 1), st.floats(0, 1e4), st.floats(0, 1e4))
def test_more_time_apart_never_raises_a_score(similarity, one, other):
    near, far = sorted((one, other))
    assert pair_score(similarity, far * HOUR, CALIBRATION) <= pair_score(
        similarity, near * HOUR, CALIBRATION
    )


@given(SHAPES)
def test_settled_cohesion_lies_between_the_prior_and_the_storys_own(story):
    low, high = sorted((story.cohesion, CALIBRATION.cohesion_prior))
    assert low - 1e-9 <= settled_cohesion(story, CALIBRATION) <= high + 1e-9
