"""Delays and shares of passes: worked examples, edges, and how rows name times and passes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clustering.errors import SourceError
from clustering.evaluation import evaluate_rows, format_evaluation
from clustering.evaluation.delays import Delay, delay
from clustering.evaluation.placements import by_pass

GOLD = [
    {"id": "a", "story": "fire", "published_at": "2026-03-01T10:00:00Z"},
    {"id": "b", "story": "fire", "published_at": "2026-03-01T12:00:00+01:00"},
    {"id": "c", "story": "fire", "published_at": "2026-03-01T15:30:00Z"},
    {"id": "d", "story": "vote", "published_at": "2026-03-02T10:00:00"},
    {"id": "e", "story": "vote", "published_at": "2026-03-02T10:00:00Z"},
]
OUTPUT = [
    {"id": "a", "story_id": 1, "pass": "discover"},
    {"id": "b", "story_id": 2, "pass": "discover"},
    {"id": "c", "story_id": 1, "pass": "match"},
    {"id": "d", "story_id": None, "pass": None},
    {"id": "e", "story_id": 1, "pass": "match"},
]


def with_time(moment):
    return [*GOLD, {"id": "f", "story": "vote", "published_at": moment}]


def test_a_story_is_found_when_two_of_its_articles_are_first_together():
    # fire: 10:00 and 15:30 in story 1, although 11:00 was there before; vote: never.
    found = evaluate_rows(GOLD, OUTPUT).delay
    assert found == Delay(
        2, 1, median_hours=5.5, p90_hours=None, earliest_median_hours=0, undated=0
    )


def test_the_earliest_of_several_predicted_stories_counts():
    gold, predicted = [0] * 4, [1, 2, 2, 1]
    found = delay(gold, predicted, np.array([0.0, 1.0, 3.0, 9.0]))
    assert found.median_hours == 3
    assert found.earliest_median_hours == 1


def test_never_found_is_later_than_any_time():
    gold = [0, 0, 1, 1, 2, 2]
    hours = np.array([0.0, 1, 0, 2, 0, 4])
    assert delay(gold, [0, 0, 1, 1, 2, 2], hours).median_hours == 2
    assert delay(gold, [0, 0, 1, 1, 2, 3], hours).median_hours == 2
    assert delay(gold, [0, 5, 1, 1, 2, 3], hours).median_hours is None


def test_quantiles_of_ten_stories():
    # Story s has articles at 0 and s hours.
    gold = [story for story in range(10) for _ in range(2)]
    hours = np.array([float(at) for story in range(10) for at in (0, story)])
    found = delay(gold, gold, hours)
    assert (found.median_hours, found.p90_hours, found.earliest_median_hours) == (4, 8, 4)


@pytest.mark.parametrize("moment", [None, "soon", "", 1_700_000_000, ["2026"], "2026-13-01"])
def test_what_is_no_time_is_counted_as_undated(moment):
    found = evaluate_rows(with_time(moment), OUTPUT)
    assert found.delay.undated == 1
    assert found.delay.stories == 2
    assert found.coverage.scored == 6


def test_gold_without_times_or_without_stories_has_no_delay():
    undated = [{"id": row["id"], "story": row["story"]} for row in GOLD]
    assert evaluate_rows(undated, OUTPUT).delay is None
    alone = [{**row, "story": row["id"]} for row in GOLD]
    assert evaluate_rows(alone, OUTPUT).delay is None
    assert "Hours until found" not in format_evaluation(evaluate_rows(alone, OUTPUT))


def test_passes_by_hand():
    found = {placed.name: placed for placed in evaluate_rows(GOLD, OUTPUT).passes}
    assert {name: placed.articles for name, placed in found.items()} == {
        "discover": 2,
        "match": 2,
        "none": 1,
    }
    assert found["match"].share == pytest.approx(0.4)
    # c: precision 2/3, recall 2/3; e: precision 1/3, recall 1/2
    assert found["match"].bcubed.precision == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert found["match"].bcubed.recall == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_an_article_in_no_story_was_placed_by_no_pass():
    output = [*OUTPUT[:3], {"id": "d", "story_id": None, "pass": "match"}]
    names = {placed.name: placed.articles for placed in evaluate_rows(GOLD, output).passes}
    assert names == {"discover": 2, "match": 1, "none": 2}


def test_output_that_names_no_pass_has_no_shares():
    bare = [{"id": row["id"], "story_id": row["story_id"]} for row in OUTPUT]
    found = evaluate_rows(GOLD, bare)
    assert found.passes == ()
    assert "Placed by pass" not in format_evaluation(found)
    assert found.bcubed == evaluate_rows(GOLD, OUTPUT).bcubed


def test_a_pass_that_is_no_name_is_refused():
    with pytest.raises(SourceError, match=r"assignments:1: pass is \['match'\]"):
        evaluate_rows(GOLD, [{"id": "a", "story_id": 1, "pass": ["match"]}])


def test_too_few_passes_are_refused():
    with pytest.raises(ValueError, match="3 articles but 2 passes"):
        by_pass([1, 1, 2], [1, 1, 2], ["match", None])


def test_the_report_says_when_and_by_which_pass():
    report = format_evaluation(evaluate_rows(GOLD, OUTPUT)).splitlines()
    rows = {line[:24].strip(): line[24:].split() for line in report}
    assert rows["Hours until found"] == [
        "median",
        "9",
        "in",
        "10",
        "found",
        "at",
        "best",
        "undated",
    ]
    assert rows["Gold stories of 2+"] == ["5.5", "never", "50.0%", "0.0", "0"]
    assert rows["match"] == ["40.0%", "2", "0.538"]
    assert rows["none"] == ["20.0%", "1", "0.667"]


def test_everything_survives_json():
    plain = evaluate_rows(GOLD, OUTPUT).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["delay"]["p90_hours"] is None
    assert {placed["name"] for placed in plain["passes"]} == {"match", "discover", "none"}
    assert plain["predicted"]["bands"][2] == {"least": 3, "most": 4, "stories": 1, "articles": 3}
