"""Baseline systems against slow, obvious versions on random streams."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.evaluation import baselines
from clustering.evaluation.baselines import AverageLinkage, published_passes


@st.composite
def streams(draw, largest=40):
    """Vectors around a few topics and times over some days; cosines are spread over 0 to 1."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, topics = draw(st.integers(1, largest)), draw(st.integers(1, 4))
    centres = rng.normal(size=(topics, 5))
    vectors = centres[rng.integers(0, topics, n)] + draw(st.floats(0.2, 1.5)) * rng.normal(
        size=(n, 5)
    )
    hours = draw(st.sampled_from([5.0, 40.0, 120.0])) * rng.random(n)
    if draw(st.booleans()):
        hours = np.floor(hours)
    return vectors.astype(np.float32), hours


def cosine(one, other):
    one, other = np.asarray(one, float), np.asarray(other, float)
    return one @ other / np.linalg.norm(one) / np.linalg.norm(other)


def partition(labels):
    return {
        frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels).tolist()
    }


def linked_groups(articles, linked):
    """Join groups that a link connects until there is nothing more to join."""
    groups = [[article] for article in articles]
    while True:
        joined = next(
            ((a, b) for a, b in combinations(groups, 2) if any(linked(x, y) for x in a for y in b)),
            None,
        )
        if joined is None:
            return [group for group in groups if len(group) > 1]
        groups = [group for group in groups if group not in joined]
        groups.append(sorted([*joined[0], *joined[1]], key=articles.index))


class SlowPasses:
    """The published passes, article by article."""

    def __init__(self, vectors, hours, threshold):
        unit = vectors.astype(float)
        self.vectors = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        self.hours, self.threshold = hours, threshold
        self.stories = []

    def run(self):
        order = sorted(range(len(self.hours)), key=lambda i: self.hours[i])
        steps = sorted({int(self.hours[i] // 1) for i in order})
        waiting = []
        for step in steps:
            arrived = [i for i in order if self.hours[i] // 1 == step]
            oldest = min(self.hours[i] for i in arrived) - 18
            waiting = [i for i in waiting if self.hours[i] >= oldest] + arrived
            size = baselines.BATCH_ARTICLES
            for start in range(0, len(waiting), size):
                self.match(waiting[start : start + size])
            waiting = self.left(waiting)
            self.stories += linked_groups(waiting, self.linked)
            waiting = self.left(waiting)
        alone = self.left(range(len(self.hours)))
        return {frozenset(story) for story in self.stories} | {frozenset([i]) for i in alone}

    def left(self, articles):
        return [i for i in articles if not any(i in story for story in self.stories)]

    def linked(self, i, j):
        near = abs(self.hours[i] - self.hours[j]) <= 18
        return near and self.vectors[i] @ self.vectors[j] >= self.threshold

    def match(self, batch):
        before = [list(story) for story in self.stories]
        for i in batch:
            scores = [
                (cosine(self.vectors[i], self.centroid(story)), place)
                for place, story in enumerate(before)
                if self.in_window(i, story)
            ]
            best, place = max(scores, default=(-2, None))
            if best >= self.threshold:
                self.stories[place].append(i)

    def centroid(self, story):
        latest = sorted(story, key=lambda i: self.hours[i])[-3:]
        return self.vectors[latest].mean(axis=0)

    def in_window(self, i, story):
        times = [self.hours[j] for j in story]
        apart = max(self.hours[i] - max(times), min(times) - self.hours[i])
        return apart <= 18 and self.hours[i] - min(times) <= 36


@settings(deadline=None)
@given(streams(), st.floats(0.3, 0.99))
def test_published_passes_equal_going_article_by_article(stream, threshold):
    vectors, hours = stream
    labels = published_passes(vectors, hours, threshold)
    assert labels.dtype == np.int64
    assert partition(labels) == SlowPasses(vectors, hours, threshold).run()


@settings(deadline=None)
@given(streams(), st.floats(0.3, 0.99))
def test_a_batch_sees_what_the_one_before_decided(stream, threshold):
    vectors, hours = stream
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "BATCH_ARTICLES", 2)
        labels = published_passes(vectors, hours, threshold)
        assert partition(labels) == SlowPasses(vectors, hours, threshold).run()


def slow_linkage(vectors, threshold):
    """Join the two clusters that are nearest on average while they are near enough."""
    clusters = [[i] for i in range(len(vectors))]

    def apart(one, other):
        return np.mean([1 - cosine(vectors[i], vectors[j]) for i in one for j in other])

    while len(clusters) > 1:
        distances = {
            (a, b): apart(clusters[a], clusters[b])
            for a, b in combinations(range(len(clusters)), 2)
        }
        a, b = min(distances, key=distances.get)
        if distances[a, b] > 1 - threshold:
            break
        clusters[a] += clusters.pop(b)
    return {frozenset(cluster) for cluster in clusters}


@settings(deadline=None, max_examples=40)
@given(streams(largest=12), st.floats(0.05, 0.99))
def test_average_linkage_equals_joining_the_nearest_pair_again_and_again(stream, threshold):
    vectors, _ = stream
    labels = AverageLinkage(vectors).labels(threshold)
    assert labels.dtype == np.int64
    assert partition(labels) == slow_linkage(vectors, threshold)


@settings(deadline=None, max_examples=20)
@given(streams(), st.integers(1, 7))
def test_distances_do_not_depend_on_the_blocks_they_are_made_in(stream, rows):
    vectors, _ = stream
    unit = baselines._unit(vectors)
    expected = [1 - cosine(vectors[i], vectors[j]) for i, j in combinations(range(len(unit)), 2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "_BLOCK_ROWS", rows)
        assert baselines._cosine_distances(unit) == pytest.approx(np.array(expected), abs=1e-5)
