"""Events scored against gold stories of days, and against a slow double loop."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clustering.errors import SourceError
from clustering.evaluation import evaluate_rows, format_evaluation
from clustering.evaluation.events import FAR_HOURS, EventScore, event_score

GOLD = [
    {"id": "a", "story": "trial", "published_at": "2026-03-01T00:00:00Z"},
    {"id": "b", "story": "trial", "published_at": "2026-03-03T00:00:00Z"},
    {"id": "c", "story": "trial", "published_at": "2026-03-05T00:00:00Z"},
    {"id": "d", "story": "storm", "published_at": "2026-03-05T00:00:00Z"},
]
OUTPUT = [
    {"id": "a", "story_id": 1, "event_id": 9},
    {"id": "b", "story_id": 2, "event_id": 9},
    {"id": "c", "story_id": 3, "event_id": None},
    {"id": "d", "story_id": 3, "event_id": None},
]


def test_far_pairs_count_where_they_are_in_one_event():
    found = evaluate_rows(GOLD, OUTPUT).events
    # Far gold pairs: ab, ac, bc. In one event or story: ab and cd, of which ab is gold.
    assert found == EventScore(far_pairs=3, far_recall=1 / 3, pairs=2, precision=0.5)


def test_output_without_events_has_no_score():
    plain = [{"id": row["id"], "story_id": row["story_id"]} for row in OUTPUT]
    assert evaluate_rows(GOLD, plain).events is None
    nowhere = [row | {"event_id": None} for row in OUTPUT]
    assert evaluate_rows(GOLD, nowhere).events is None


def test_the_report_names_both_figures():
    text = format_evaluation(evaluate_rows(GOLD, OUTPUT))
    (line,) = [line for line in text.splitlines() if line.startswith("Pairs over 36 h apart")]
    assert line.split()[-4:] == ["0.333", "3", "0.500", "2"]
    assert evaluate_rows(GOLD, OUTPUT).to_dict()["events"]["precision"] == 0.5


def test_an_article_in_no_story_is_in_no_event_with_others():
    output = [*OUTPUT[:2], OUTPUT[2] | {"story_id": None}, OUTPUT[3] | {"story_id": None}]
    assert evaluate_rows(GOLD, output).events.pairs == 1


def test_without_far_pairs_or_events_there_is_no_share():
    score = event_score([0, 0], [1, 2], np.array([0.0, 1.0]))
    assert score == EventScore(0, None, 0, None)
    undated = event_score([0, 0], [1, 1], np.array([np.nan, np.nan]))
    assert undated == EventScore(0, None, 1, 1.0)


@pytest.mark.parametrize("seed", range(20))
def test_counts_are_those_of_a_double_loop(seed):
    random = np.random.default_rng(seed)
    count = 40
    gold, events = random.integers(0, 5, count), random.integers(0, 6, count)
    hours = np.round(random.uniform(0, 120, count))
    hours[random.uniform(size=count) < 0.1] = np.nan
    far = near = pairs = right = 0
    for a in range(count):
        for b in range(a):
            together, same = events[a] == events[b], gold[a] == gold[b]
            pairs, right = pairs + together, right + (together and same)
            if same and abs(hours[a] - hours[b]) > FAR_HOURS:
                far, near = far + 1, near + together
    found = event_score(gold, events, hours)
    assert (found.far_pairs, found.pairs) == (far, pairs)
    assert found.far_recall == pytest.approx(near / far)
    assert found.precision == pytest.approx(right / pairs)


TRIED = [
    row | {"event_ids": {"0.7": row["event_id"], "0.40": 5 if row["id"] != "d" else None}}
    for row in OUTPUT
]


def test_the_curve_has_stories_alone_and_each_threshold_the_lowest_first():
    curve = evaluate_rows(GOLD, TRIED).event_curve
    assert [point.threshold for point in curve] == [None, 0.4, 0.7]
    alone, low, high = (point.score for point in curve)
    # Stories alone: c and d are in one, which is wrong. At .4: a, b and c, all far and right.
    assert alone == EventScore(far_pairs=3, far_recall=0.0, pairs=1, precision=0.0)
    assert low == EventScore(far_pairs=3, far_recall=1.0, pairs=3, precision=1.0)
    assert high == evaluate_rows(GOLD, OUTPUT).events


def test_an_output_that_tried_nothing_has_no_curve():
    assert evaluate_rows(GOLD, OUTPUT).event_curve == ()
    assert "stories alone" not in format_evaluation(evaluate_rows(GOLD, OUTPUT))


def test_the_report_and_the_document_hold_the_whole_curve():
    evaluation = evaluate_rows(GOLD, TRIED)
    lines = {
        line.split("  ")[1]: line
        for line in format_evaluation(evaluation).splitlines()[1:]
        if line.startswith("  ")
    }
    assert lines["at 0.4"].split()[-4:] == ["1.000", "3", "1.000", "3"]
    assert lines["stories alone"].split()[-4:] == ["0.000", "3", "0.000", "1"]
    points = evaluation.to_dict()["event_curve"]
    assert [point["threshold"] for point in points] == [None, 0.4, 0.7]
    assert json.loads(json.dumps(points)) == points


def test_an_article_that_a_threshold_does_not_mention_is_in_its_story():
    output = [{**row, "event_ids": {"0.4": 5}} if row["id"] in "ab" else row for row in OUTPUT]
    (_, point) = evaluate_rows(GOLD, output).event_curve
    assert point.score == evaluate_rows(GOLD, OUTPUT).events


@pytest.mark.parametrize("wrong", [[1], "x", 3, {"high": 1}, {"0.5": 1.5}, {"0.5": True}])
def test_events_of_no_threshold_are_refused_by_row(wrong):
    output = [*OUTPUT[:1], OUTPUT[1] | {"event_ids": wrong}]
    with pytest.raises(SourceError, match=r"assignments:2: (event_ids|0\.5) is"):
        evaluate_rows(GOLD, output)
