from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from plain_calibration import PLAIN

from clustering.stories.match import Candidate, Match, best_matches, in_window, placements
from clustering.stories.placement import Placement
from clustering.stories.scoring import StoryShape

START = datetime(2026, 3, 1, tzinfo=UTC)
CALIBRATION = replace(PLAIN, time_penalty=0.1)


def candidate(
    at=0.0, first=0.0, latest=0.0, *, similarity=0.8, story_id=1, language="en"
) -> Candidate:
    times = [START + timedelta(hours=hours) for hours in (at, first, latest)]
    story = StoryShape(story_id, *times[1:], 2, 0.5, {"en": 1.0})
    return Candidate(1, times[0], language, similarity, story)


@pytest.mark.parametrize(
    ("at", "first", "latest", "inside"),
    [
        (18, 0, 0, True),
        (18.01, 0, 0, False),
        (36, 0, 20, True),
        (36.01, 0, 20, False),
        (-18, 0, 30, True),
        (-18.01, 0, 30, False),
        (10, 0, 30, True),
    ],
)
def test_the_window_of_a_story(at, first, latest, inside):
    assert in_window(candidate(at, first, latest), CALIBRATION) is inside


@pytest.mark.parametrize(
    ("at", "apart"),
    [(-2, 2), (0, 0), (3, 0), (6, 0), (10, 4)],
    ids=["before", "first", "in", "last", "after"],
)
def test_time_apart_is_to_the_storys_nearer_end(at, apart):
    assert candidate(at, first=0, latest=6).apart == timedelta(hours=apart)


def test_the_best_score_wins_and_not_the_best_cosine():
    near = candidate(at=10, latest=10, similarity=0.7, story_id=1)
    far = candidate(at=10, latest=0, similarity=0.8, story_id=2)
    assert best_matches([near, far], CALIBRATION) == {1: Match(1, 0.7)}


def test_a_story_in_other_languages_needs_less_likeness():
    calibration = replace(CALIBRATION, language_penalty=0.1)
    own = candidate(similarity=0.75, story_id=1)
    foreign = replace(candidate(similarity=0.7, story_id=2), language="ja")
    assert best_matches([own], calibration)[1].score == pytest.approx(0.65)
    assert best_matches([foreign], calibration)[1].score == pytest.approx(0.7)


def test_ties_go_to_the_older_story_in_any_order():
    tied = [candidate(story_id=story) for story in (5, 3, 9)]
    assert best_matches(tied, CALIBRATION) == best_matches(tied[::-1], CALIBRATION)
    assert best_matches(tied, CALIBRATION)[1].story_id == 3


def test_a_story_outside_the_window_is_no_match_however_alike():
    assert best_matches([candidate(at=19, similarity=1)], CALIBRATION) == {}


def test_every_article_gets_one_placement_in_order():
    best = {1: Match(7, 0.5), 2: Match(7, 0.499)}
    nearest = {(1, 7): 40, (2, 7): 41, (3, 7): 42}
    assert placements([3, 1, 2], best, nearest, CALIBRATION) == [
        Placement(3, None, "none", None, 0.5, None),
        Placement(1, 7, "match", 0.5, 0.5, 40),
        Placement(2, None, "none", 0.499, 0.5, 41),
    ]


def test_a_match_without_a_near_member_says_so():
    (placed,) = placements([1], {1: Match(7, 0.9)}, {(1, 8): 40}, CALIBRATION)
    assert placed == Placement(1, 7, "match", 0.9, 0.5, None)


def test_the_threshold_belongs_to_the_calibration():
    strict = replace(CALIBRATION, match=0.95)
    (placed,) = placements([1], {1: Match(7, 0.9)}, {}, strict)
    assert placed == Placement(1, None, "none", 0.9, 0.95, None)
