from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.tasks.policy import back_off, checked_name, error_text, scores_of


def test_the_wait_doubles_up_to_a_day():
    minutes = [back_off(failures) / timedelta(minutes=1) for failures in range(1, 14)]
    assert minutes == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440]


@given(st.integers(1, 2**31 - 1))
def test_however_often_it_failed_the_wait_is_a_day_at_most(failures):
    assert timedelta(minutes=1) <= back_off(failures) <= back_off(failures + 1)
    assert back_off(failures) <= timedelta(days=1)


@pytest.mark.parametrize("name", ["score", "rank-2", "to_french", "a" * 63])
def test_names_of_tasks(name):
    assert checked_name(name) == name


@pytest.mark.parametrize("name", ["", "Score", "a.b", "2nd", "a b", "é", "a" * 64, "score\n"])
def test_what_is_no_name_of_a_task(name):
    with pytest.raises(ValueError, match="no name of a task"):
        checked_name(name)


def test_the_numbers_at_the_top_of_a_result_are_scores():
    result = {"score": 3, "spread": 0.5, "why": "7", "sure": True, "parts": {"a": 1}, "none": None}
    assert scores_of("score", result) == {"score": 3.0, "score.spread": 0.5}
    assert scores_of("rank", {"score": -1}) == {"rank.score": -1.0}
    assert scores_of("rank", {}) == {}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_cannot_be_sorted_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"the score rank\.odd is"):
        scores_of("rank", {"odd": value})


def test_errors_are_kept_with_their_kind():
    assert error_text(TimeoutError("after 30 s")) == "TimeoutError: after 30 s"
    assert error_text("no answer") == "no answer"
    assert error_text(KeyError("a")) == "KeyError: 'a'"


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_errors_can_be_stored_whatever_they_say(text):
    kept = error_text(text * 50)
    assert len(kept) <= 2000
    assert "\0" not in kept
    kept.encode()
