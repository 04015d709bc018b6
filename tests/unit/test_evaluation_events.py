"""Events scored against gold stories of days, and against a slow double loop."""

from __future__ import annotations

import numpy as np
import pytest

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
