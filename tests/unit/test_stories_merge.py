from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from plain_calibration import PLAIN

from clustering.stories.merge import Merge, StoryPair, merges
from clustering.stories.scoring import StoryShape

START = datetime(2026, 3, 1, tzinfo=UTC)
CALIBRATION = PLAIN


def shape(story_id, first=0.0, latest=0.0, size=2) -> StoryShape:
    start, end = (START + timedelta(hours=hours) for hours in (first, latest))
    return StoryShape(story_id, start, end, size, 0.5, {"en": 1.0})


def pair(a, b, similarity) -> StoryPair:
    return StoryPair(shape(a), shape(b), similarity)


def test_nothing_near_nothing_merged():
    assert merges([], CALIBRATION) == []


def test_the_older_story_survives_from_whichever_side_it_is_seen():
    assert merges([pair(4, 3, 0.6)], CALIBRATION) == [Merge(3, 4, 0.6)]
    assert merges([pair(3, 4, 0.6)], CALIBRATION) == [Merge(3, 4, 0.6)]


def test_a_pair_seen_twice_is_merged_once():
    assert len(merges([pair(3, 4, 0.6), pair(4, 3, 0.6)], CALIBRATION)) == 1


def test_the_threshold_must_be_reached():
    assert merges([pair(1, 2, 0.499)], CALIBRATION) == []
    assert merges([pair(1, 2, 0.5)], CALIBRATION) == [Merge(1, 2, 0.5)]


def test_only_mutual_nearest_stories_merge():
    found = merges([pair(1, 2, 0.7), pair(2, 3, 0.8), pair(1, 3, 0.6)], CALIBRATION)
    assert found == [Merge(2, 3, 0.8)]


def test_several_pairs_merge_in_one_round_and_none_overlaps():
    found = merges([pair(1, 2, 0.7), pair(3, 4, 0.9), pair(2, 3, 0.6)], CALIBRATION)
    assert found == [Merge(1, 2, 0.7), Merge(3, 4, 0.9)]


def test_among_equals_the_older_story_is_nearest():
    assert merges([pair(2, 3, 0.7), pair(1, 3, 0.7)], CALIBRATION) == [Merge(1, 3, 0.7)]


@pytest.mark.parametrize(("latest", "count"), [(54, 1), (54.1, 0)])
def test_a_merged_story_spans_no_more_than_age_and_gap(latest, count):
    early, late = shape(1, 0, 10), shape(2, 40, latest)
    assert len(merges([StoryPair(early, late, 0.9)], CALIBRATION)) == count


def test_a_story_too_far_in_time_is_nobodys_nearest():
    far = StoryPair(shape(1), shape(2, 60, 60), 0.99)
    assert merges([far, pair(1, 3, 0.6)], CALIBRATION) == [Merge(1, 3, 0.6)]


def test_penalties_count_before_nearness():
    calibration = replace(CALIBRATION, merge_size_penalty=0.1)
    large = StoryPair(shape(1, size=50), shape(2, size=50), 0.9)
    small = StoryPair(shape(1, size=50), shape(3, size=1), 0.7)
    assert merges([large, small], calibration) == [Merge(1, 3, 0.7)]
