"""Delays and shares of passes against slow, obvious versions on random partitions."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.evaluation import evaluate_rows
from clustering.evaluation.delays import delay
from clustering.evaluation.placements import by_pass

PASSES = ("match", "discover", "duplicate", None)


@st.composite
def dated_partitions(draw):
    """Gold label, predicted label and time (NaN: none) of each article; times often coincide."""
    time = st.one_of(st.integers(0, 12).map(float), st.just(math.nan))
    article = st.tuples(st.integers(0, 4), st.integers(0, 4), time)
    return [list(column) for column in zip(*draw(st.lists(article, min_size=1)), strict=True)]


def slow_waits(gold, predicted, hours):
    """Hours until found and hours to the second article, one pair for each gold story of two or more."""
    waits = []
    for story in set(gold):
        own = [i for i, label in enumerate(gold) if label == story and not math.isnan(hours[i])]
        if len(own) < 2:
            continue
        first = min(hours[i] for i in own)
        together = [
            max(hours[i], hours[j]) - first
            for i, j in combinations(own, 2)
            if predicted[i] == predicted[j]
        ]
        best = min(max(hours[i], hours[j]) - first for i, j in combinations(own, 2))
        waits.append((min(together, default=math.inf), best))
    return waits


def slow_quantile(values, share):
    """The smallest value that at least a share of all values does not exceed."""
    return next(v for v in sorted(values) if sum(w <= v for w in values) >= share * len(values))


def finite(value):
    return None if math.isinf(value) else value


@given(dated_partitions())
def test_delay_equals_looking_at_every_pair_of_articles(articles):
    gold, predicted, hours = articles
    waits = slow_waits(gold, predicted, hours)
    found = delay(gold, predicted, np.array(hours))
    if not waits:
        assert found is None
        return
    waited = [wait for wait, _ in waits]
    assert found.stories == len(waits)
    assert found.found == sum(math.isfinite(wait) for wait in waited)
    assert found.median_hours == finite(slow_quantile(waited, 0.5))
    assert found.p90_hours == finite(slow_quantile(waited, 0.9))
    assert found.earliest_median_hours == slow_quantile([best for _, best in waits], 0.5)
    assert found.undated == sum(map(math.isnan, hours))


@given(dated_partitions())
def test_nothing_is_found_before_it_can_be(articles):
    gold, predicted, hours = articles
    found, perfect = (delay(gold, other, np.array(hours)) for other in (predicted, gold))
    if perfect is not None:
        assert perfect.found == perfect.stories
        assert perfect.median_hours == perfect.earliest_median_hours == found.earliest_median_hours
        assert found.median_hours is None or found.median_hours >= perfect.median_hours


def slow_precision(gold, predicted, i):
    same = [j for j, label in enumerate(predicted) if label == predicted[i]]
    return sum(gold[j] == gold[i] for j in same) / len(same)


@given(dated_partitions(), st.data())
def test_shares_of_passes_equal_counting(articles, data):
    gold, predicted, _ = articles
    n = len(gold)
    passes = data.draw(st.lists(st.sampled_from(PASSES), min_size=n, max_size=n))
    found = by_pass(gold, predicted, passes)
    assert {placed.name for placed in found} == {name or "none" for name in passes}
    for placed in found:
        own = [i for i, name in enumerate(passes) if (name or "none") == placed.name]
        assert (placed.articles, placed.share) == (len(own), pytest.approx(len(own) / n))
        precision = sum(slow_precision(gold, predicted, i) for i in own) / len(own)
        recall = sum(slow_precision(predicted, gold, i) for i in own) / len(own)
        assert placed.bcubed.precision == pytest.approx(precision)
        assert placed.bcubed.recall == pytest.approx(recall)
    counts = [(-placed.articles, placed.name) for placed in found]
    assert counts == sorted(counts)


@given(dated_partitions(), st.data())
def test_rows_give_what_the_arrays_give(articles, data):
    gold, predicted, hours = articles
    n = len(gold)
    passes = data.draw(st.lists(st.sampled_from(PASSES[:3]), min_size=n, max_size=n))
    moments = [None if math.isnan(h) else f"2026-03-01T{int(h):02}:00:00Z" for h in hours]
    gold_rows = [
        {"id": i, "story": story, "published_at": moment}
        for i, (story, moment) in enumerate(zip(gold, moments, strict=True))
    ]
    assignments = [
        {"id": i, "story_id": story, "pass": name}
        for i, (story, name) in enumerate(zip(predicted, passes, strict=True))
    ]
    found = evaluate_rows(gold_rows, assignments)
    assert found.delay == delay(gold, predicted, np.array(hours))
    assert found.passes == by_pass(gold, predicted, passes)
