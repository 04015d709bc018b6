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
    match_parts,
    merge_score,
    pair_score,
    settled_cohesion,
)

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
CALIBRATION = Calibration(
    match=0.5,
    attach=0.5,
    link=0.5,
    merge=0.5,
    story_gap_hours=24,
    story_age_hours=72,
    centroid_members=10,
    neighbours=20,
    time_penalty=0.05,
    language_penalty=0.06,
    chain_slack=0.05,
    match_cohesion_penalty=0.2,
    merge_cohesion_penalty=0.5,
    merge_size_penalty=0.03,
    cohesion_prior=0.6,
    event_link=0.5,
    event_gap_hours=168,
    event_time_penalty=0,
)


def shape(first=0.0, latest=0.0, size=1, cohesion=0.6, languages=None) -> StoryShape:
    """A story of as many languages as members, unless told, so that language costs nothing."""
    tongues = languages or {f"x{number}": 1 / size for number in range(size)}
    return StoryShape(1, START + first * HOUR, START + latest * HOUR, size, cohesion, tongues)


def other_tongue(**given) -> StoryShape:
    """A story that shares no language with those of `shape`."""
    return shape(**given, languages={"other": 1.0})


def pair(similarity, apart=timedelta(), same_language=0.0) -> float:
    return pair_score(similarity, apart, same_language, CALIBRATION)


def test_hours_of_a_span():
    assert hours(timedelta(days=1, minutes=30)) == 24.5
    assert hours(-HOUR) == -1


def test_articles_of_one_time_lose_nothing():
    assert pair(0.8) == 0.8


def test_the_time_penalty_is_per_unit_of_log_one_plus_hours():
    assert pair(0.8, 9 * HOUR) == pytest.approx(0.8 - 0.05 * log(10))
    assert pair(0.8, -9 * HOUR) == pair(0.8, 9 * HOUR)


def test_two_articles_of_one_language_lose_the_language_penalty():
    assert pair(0.8, same_language=1) == pytest.approx(0.8 - 0.06)
    assert pair(0.8, same_language=0.5) == pytest.approx(0.8 - 0.03)


def test_an_article_loses_by_the_share_of_a_story_in_its_language():
    story = shape(size=4, languages={"ja": 0.75, "bn": 0.25})
    settled = settled_cohesion(story, CALIBRATION)
    expected = 0.8 - 0.2 * (settled - 0.6)
    for language, share in (("ja", 0.75), ("bn", 0.25), ("ar", 0)):
        found = match_parts(0.8, timedelta(), language, story, CALIBRATION).score
        assert found == pytest.approx(expected - 0.06 * share)


def test_a_tight_story_is_joined_less_easily():
    tight, loose = shape(size=10, cohesion=0.9), shape(size=10, cohesion=0.4)
    scores = [
        match_parts(0.8, timedelta(), "en", story, CALIBRATION).score for story in (tight, loose)
    ]
    assert scores[0] < 0.8 < scores[1]


def test_stories_lose_by_the_share_of_pairs_in_one_language():
    one = shape(languages={"ja": 0.5, "bn": 0.5})
    other = shape(languages={"ja": 0.5, "ar": 0.5})
    assert merge_score(0.7, one, other, CALIBRATION) == pytest.approx(0.7 - 0.06 * 0.25)


def test_stories_that_overlap_in_time_lose_nothing_to_it():
    one, other = shape(0, 10), other_tongue(first=5, latest=30)
    assert merge_score(0.7, one, other, CALIBRATION) == pytest.approx(0.7)


def test_stories_apart_lose_by_the_time_between_their_ends():
    one, other = shape(0, 10), other_tongue(first=19, latest=30)
    expected = 0.7 - 0.05 * log(10)
    assert merge_score(0.7, one, other, CALIBRATION) == pytest.approx(expected)


def test_the_smaller_storys_size_speaks_against_a_merge():
    large, small = shape(size=100), shape(size=4, languages=dict.fromkeys("abcd", 0.25))
    expected = 0.7 - 0.03 * log(4)
    assert merge_score(0.7, large, small, CALIBRATION) == pytest.approx(expected)


def test_the_tighter_storys_cohesion_speaks_against_a_merge():
    tight = shape(size=4, cohesion=0.9)
    loose = shape(size=4, cohesion=0.3, languages=dict.fromkeys("abcd", 0.25))
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
    size=st.integers(1, 50),
    cohesion=st.floats(-1, 1),
)


@given(st.floats(-1, 1), SHAPES, SHAPES)
def test_a_merge_scores_the_same_from_both_sides(similarity, a, b):
    assert merge_score(similarity, a, b, CALIBRATION) == merge_score(similarity, b, a, CALIBRATION)


def test_a_story_in_one_language_is_less_cohesive_than_its_cosines_say():
    mixed, single = shape(size=4, cohesion=0.9), shape(size=4, cohesion=0.9, languages={"ja": 1.0})
    assert settled_cohesion(single, CALIBRATION) == pytest.approx(
        settled_cohesion(mixed, CALIBRATION) - 0.06 * 3 / 6
    )


def test_pairs_of_one_language_are_counted_among_different_members():
    """Of four members, three Japanese: 3 of 6 pairs."""
    mixed = shape(size=4, cohesion=0.9)
    most = shape(size=4, cohesion=0.9, languages={"ja": 0.75, "bn": 0.25})
    assert settled_cohesion(most, CALIBRATION) == pytest.approx(
        settled_cohesion(mixed, CALIBRATION) - 0.06 * 0.5 * 3 / 6
    )


@given(st.floats(-1, 1), st.floats(0, 1e4), st.floats(0, 1e4))
def test_more_time_apart_never_raises_a_score(similarity, one, other):
    near, far = sorted((one, other))
    assert pair(similarity, far * HOUR) <= pair(similarity, near * HOUR)


@given(SHAPES)
def test_settled_cohesion_lies_between_the_prior_and_the_storys_own(story):
    low, high = sorted((story.cohesion, CALIBRATION.cohesion_prior))
    assert low - 1e-9 <= settled_cohesion(story, CALIBRATION) <= high + 1e-9
