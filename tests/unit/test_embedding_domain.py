"""The running domain mean, against the mean of everything that it was given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.embedding import domain
from clustering.embedding.domain import DomainMean

DIMENSION = 4
SEEDS = st.integers(0, 2**32 - 1)


def fresh():
    nothing = np.zeros(DIMENSION)
    return DomainMean(version=1, mean=nothing, running=nothing, articles=0)


def centred(count, seed=0, shift=0.0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(count, DIMENSION)) + shift).astype(np.float32)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=6), SEEDS)
def test_running_mean_is_the_mean_of_all_chunks(sizes, seed):
    chunks = [centred(size, seed + place) for place, size in enumerate(sizes)]
    state = fresh()
    for chunk in chunks:
        state = state.take(chunk)
    everything = np.concatenate(chunks)
    assert state.articles == len(everything)
    np.testing.assert_allclose(state.running, everything.mean(axis=0, dtype=np.float64), atol=1e-6)
    assert state.version == 1
    assert not state.mean.any()


def test_taking_does_not_change_what_was_there():
    before = fresh().take(centred(10))
    running = before.running.copy()
    after = before.take(centred(10, seed=1))
    np.testing.assert_array_equal(before.running, running)
    assert not np.allclose(after.running, running)
    assert (before.articles, after.articles) == (10, 20)


def test_running_mean_adds_in_double_precision():
    """Single precision loses what each of many vectors adds to a large sum."""
    chunk = np.full((3, DIMENSION), 0.1, np.float32)
    state = fresh()
    for _ in range(2000):
        state = state.take(chunk)
    assert state.running.dtype == np.float64
    np.testing.assert_allclose(state.running, np.float32(0.1), rtol=1e-12)


def test_running_mean_forgets_beyond_its_memory(monkeypatch):
    monkeypatch.setattr(domain, "MEMORY_ARTICLES", 100)
    old = fresh().take(np.ones((1000, DIMENSION), np.float32))
    state = old.take(np.zeros((100, DIMENSION), np.float32))
    np.testing.assert_allclose(state.running, 0.5)
    assert state.articles == 200
    for _ in range(10):
        state = state.take(np.zeros((100, DIMENSION), np.float32))
    np.testing.assert_allclose(state.running, 0.5**11)
    assert state.articles == 200


@given(st.integers(1, 5000), SEEDS)
def test_mean_in_force_is_drawn_toward_the_general_one(articles, seed):
    running = np.random.default_rng(seed).normal(size=DIMENSION)
    state = DomainMean(3, np.full(DIMENSION, 10.0), running, articles).refitted()
    share = articles / (articles + domain.PRIOR_ARTICLES)
    assert state.version == 4
    np.testing.assert_allclose(state.mean, share * running, rtol=1e-12)
    np.testing.assert_array_equal(state.running, running)
    assert state.articles == articles


@pytest.mark.parametrize("few", [1, 10])
def test_a_few_articles_change_nothing(few):
    state = fresh().take(np.full((few, DIMENSION), 0.4, np.float32))
    assert state.refitted() is state


def test_a_corpus_of_its_own_changes_the_mean_once_and_then_settles():
    chunk = np.full((3000, DIMENSION), 0.2, np.float32)
    first = fresh().take(chunk).refitted()
    assert first.version == 2
    np.testing.assert_allclose(first.mean, 0.75 * 0.2, rtol=1e-6)
    state = first
    versions = []
    for _ in range(20):
        state = state.take(chunk).refitted()
        versions.append(state.version)
    assert versions[-1] == versions[-10]
    assert np.linalg.norm(state.mean - 0.2) < 0.2 * DIMENSION**0.5 * 0.1


@pytest.mark.parametrize(("share", "moves"), [(0.99, False), (1.01, True)])
def test_the_mean_moves_only_past_the_distance(share, moves):
    mean = np.array([0.3, 0.0, 0.0, 0.0])
    weight = 1000 / (1000 + domain.PRIOR_ARTICLES)
    wanted = mean + np.array([0.0, share * domain.REFIT_DISTANCE, 0.0, 0.0])
    state = DomainMean(7, mean, wanted / weight, 1000).refitted()
    assert state.version == (8 if moves else 7)
    np.testing.assert_allclose(state.mean, wanted if moves else mean, rtol=1e-12)


def test_aligned_vectors_are_centred_less_the_mean_at_length_one():
    mean = np.array([0.5, -0.5, 0.25, 0.0])
    state = DomainMean(2, mean, np.zeros(DIMENSION), 1)
    rows = centred(20)
    aligned = state.align(rows)
    assert aligned.dtype == np.float32
    for row, found in zip(rows.tolist(), aligned, strict=True):
        moved = [value - less for value, less in zip(row, mean.tolist(), strict=True)]
        length = sum(value * value for value in moved) ** 0.5
        np.testing.assert_allclose(found, [value / length for value in moved], atol=1e-6)


def test_a_vector_that_is_the_mean_has_no_direction():
    mean = np.array([0.5, -0.5, 0.25, 0.0])
    state = DomainMean(2, mean, mean, 1)
    np.testing.assert_array_equal(state.align(mean[None].astype(np.float32)), 0)


def test_aligning_does_not_depend_on_the_running_mean():
    rows = centred(5)
    one = DomainMean(1, np.ones(DIMENSION), np.zeros(DIMENSION), 0)
    other = DomainMean(1, np.ones(DIMENSION), np.ones(DIMENSION), 500)
    np.testing.assert_array_equal(one.align(rows), other.align(rows))
