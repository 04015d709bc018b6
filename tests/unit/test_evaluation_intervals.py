from __future__ import annotations

import numpy as np
import pytest

from clustering.evaluation.intervals import bcubed_interval
from clustering.evaluation.scores import bcubed, bcubed_by_article


def test_a_perfect_partition_is_sure():
    gold = [0, 0, 1, 1, 2]
    assert bcubed_interval(gold, gold) == (1.0, 1.0)


def test_the_score_lies_inside_and_more_stories_make_it_surer():
    random = np.random.default_rng(3)
    widths = []
    for stories in (20, 500):
        gold = np.repeat(np.arange(stories), 5)
        predicted = np.where(random.random(len(gold)) < 0.2, -1 - np.arange(len(gold)), gold)
        low, high = bcubed_interval(gold, predicted)
        assert low < bcubed(gold, predicted).f1 < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 3


def test_stories_and_not_articles_are_drawn():
    """Two large stories, one found and one in pieces: drawn by article the score would look sure."""
    gold = np.repeat([0, 1], 500)
    predicted = np.where(gold == 0, 0, 1 + np.arange(1000))
    low, high = bcubed_interval(gold, predicted)
    assert low < 0.1
    assert high == 1.0


def test_the_interval_agrees_with_drawing_stories_one_by_one():
    random = np.random.default_rng(5)
    gold = random.integers(0, 12, 80)
    predicted = random.integers(0, 15, 80)
    precision, recall = bcubed_by_article(gold, predicted)
    scores = []
    for _ in range(4000):
        drawn = random.choice(np.unique(gold), len(np.unique(gold)))
        articles = np.concatenate([np.flatnonzero(gold == story) for story in drawn])
        p, r = precision[articles].mean(), recall[articles].mean()
        scores.append(2 * p * r / (p + r))
    expected = np.quantile(scores, [0.025, 0.975])
    assert bcubed_interval(gold, predicted, samples=4000) == pytest.approx(expected, abs=0.01)


def test_the_same_seed_gives_the_same_interval():
    gold, predicted = [0, 0, 1, 1, 2, 2], [0, 1, 2, 2, 3, 3]
    assert bcubed_interval(gold, predicted, seed=1) == bcubed_interval(gold, predicted, seed=1)
