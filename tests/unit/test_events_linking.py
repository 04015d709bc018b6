"""Which clusters become one event, against average linkage of the whole."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import average, fcluster
from scipy.spatial.distance import squareform

from clustering.events.linking import ClusterPair, agreements


def pair(a, b, score):
    return ClusterPair(a, b, score, abs(a), abs(b))


def test_only_mutual_nearest_above_the_threshold_agree():
    pairs = [pair(-1, -2, 0.8), pair(-2, -3, 0.9), pair(-3, -4, 0.7), pair(-5, -6, 0.4)]
    assert [(p.a, p.b) for p in agreements(pairs, 0.5)] == [(-3, -2)]


def test_a_pair_told_from_both_sides_counts_once_and_keeps_its_stories():
    told = [ClusterPair(7, -3, 0.9, 70, 3), ClusterPair(-3, 7, 0.9, 3, 70)]
    assert agreements(told, 0.5) == [ClusterPair(-3, 7, 0.9, 3, 70)]


def test_the_threshold_is_reached_by_equality():
    assert agreements([pair(1, 2, 0.5)], 0.5)
    assert not agreements([pair(1, 2, 0.4999)], 0.5)


def test_among_equals_the_lower_number_is_nearer():
    pairs = [pair(1, 2, 0.9), pair(1, 3, 0.9), pair(2, 3, 0.9)]
    assert [(p.a, p.b) for p in agreements(pairs, 0.5)] == [(1, 2)]


def test_nothing_to_decide_is_nothing_decided():
    assert agreements([], 0.5) == []


@pytest.mark.parametrize("seed", range(30))
def test_rounds_of_agreements_are_average_linkage(seed):
    """All pairs known, round after round until nothing agrees: the cut of the dendrogram."""
    random = np.random.default_rng(seed)
    count, threshold = 14, float(random.uniform(0.2, 0.8))
    scores = random.uniform(size=(count, count))
    scores = (scores + scores.T) / 2
    clusters = {-(number + 1): [number] for number in range(count)}
    fresh = 1
    while True:
        pairs = [
            pair(a, b, float(scores[np.ix_(clusters[a], clusters[b])].mean()))
            for a, b in combinations(sorted(clusters), 2)
        ]
        found = agreements(pairs, threshold)
        if not found:
            break
        for agreed in found:
            clusters[fresh] = clusters.pop(agreed.a) + clusters.pop(agreed.b)
            fresh += 1
    distances = 1 - scores
    np.fill_diagonal(distances, 0)
    expected = fcluster(average(squareform(distances)), 1 - threshold, "distance")
    slow = {frozenset(np.flatnonzero(expected == label).tolist()) for label in expected}
    assert {frozenset(members) for members in clusters.values()} == slow, seed
