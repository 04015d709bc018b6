"""Thresholds carried over by the background: against slow sums, and decisions that must not change."""

from __future__ import annotations

import math
import tomllib
from dataclasses import asdict, fields, replace
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_calibration import PLAIN

from clustering.settings import DEFAULT_MODEL
from clustering.stories import background
from clustering.stories.background import Background, carried_over, measure
from clustering.stories.calibration import Calibration, load_calibration

OWN = Background(mean=0.01, deviation=0.12, articles=1000)
# What has no scale of similarity: hours, counts, and parts of a difference of similarities.
UNCHANGED = {
    "story_gap_hours",
    "event_gap_hours",
    "story_age_hours",
    "centroid_members",
    "neighbours",
    "match_cohesion_penalty",
    "merge_cohesion_penalty",
}


def unit_vectors(count, seed=0, dimension=6):
    rows = np.random.default_rng(seed).normal(size=(count, dimension))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def slow(vectors, hours, least_hours):
    rows = vectors.tolist()
    found = [
        sum(x * y for x, y in zip(rows[a], rows[b], strict=True))
        for a in range(len(rows))
        for b in range(a)
        if abs(hours[a] - hours[b]) >= least_hours
    ]
    mean = sum(found) / len(found)
    return mean, math.sqrt(sum((value - mean) ** 2 for value in found) / len(found))


@given(st.integers(2, 40), st.integers(0, 1000))
def test_background_is_mean_and_deviation_over_all_pairs(count, seed):
    vectors = unit_vectors(count, seed)
    found = measure(vectors, np.arange(count, dtype=float), 77)
    mean, deviation = slow(vectors, np.arange(count), 0)
    assert found.mean == pytest.approx(mean, abs=1e-6)
    assert found.deviation == pytest.approx(deviation, abs=1e-6)
    assert found.articles == 77


def test_pairs_far_apart_are_preferred_where_there_are_enough(monkeypatch):
    vectors, hours = unit_vectors(30), np.arange(30) * 10.0
    far = slow(vectors, hours, background.FAR_HOURS)
    every = slow(vectors, hours, 0)
    assert far != pytest.approx(every, abs=1e-3)
    assert measure(vectors, hours, 30).mean == pytest.approx(every[0], abs=1e-6)
    monkeypatch.setattr(background, "LEAST_FAR_PAIRS", 200)
    found = measure(vectors, hours, 30)
    assert (found.mean, found.deviation) == pytest.approx(far, abs=1e-6)


def test_every_attribute_of_a_calibration_is_carried_over_or_left_on_purpose():
    named = {*background.POINTS, *background.DISTANCES, *UNCHANGED}
    assert named == {field.name for field in fields(Calibration)}
    assert len(named) == len(background.POINTS) + len(background.DISTANCES) + len(UNCHANGED)


def test_a_space_of_the_same_background_keeps_its_thresholds():
    calibration = load_calibration(DEFAULT_MODEL)
    found = carried_over(calibration, OWN, replace(OWN, articles=3))
    assert asdict(found) == pytest.approx(asdict(calibration))


@given(
    mean=st.floats(-0.1, 0.9),
    deviation=st.floats(0.01, 0.2),
    cosine=st.floats(-0.5, 1),
    late=st.floats(0, 5),
)
def test_a_space_that_is_stretched_and_shifted_decides_the_same(mean, deviation, cosine, late):
    """Any two articles that join in one space join in the other, whatever time lies between."""
    calibration = replace(PLAIN, match=0.4, time_penalty=0.03)
    other = Background(mean, deviation, 1000)
    moved = carried_over(calibration, OWN, other)
    there = mean + (cosine - OWN.mean) / OWN.deviation * deviation
    before = cosine - calibration.time_penalty * late - calibration.match
    after = there - moved.time_penalty * late - moved.match
    if moved.match < background._HIGHEST:
        assert after == pytest.approx(before * deviation / OWN.deviation, abs=1e-9)


def test_standard_scores_stay():
    other = Background(mean=0.8, deviation=0.03, articles=1000)
    moved = carried_over(replace(PLAIN, match=0.37, link=0.43, merge=0.5), OWN, other)
    for name, before in (("match", 0.37), ("link", 0.43), ("merge", 0.5)):
        score = (getattr(moved, name) - other.mean) / other.deviation
        assert score == pytest.approx((before - OWN.mean) / OWN.deviation)
    assert moved.chain_slack == pytest.approx(PLAIN.chain_slack / 4)


def test_no_threshold_is_carried_beyond_what_a_cosine_can_be():
    wide = Background(mean=0.5, deviation=0.4, articles=1000)
    moved = carried_over(replace(PLAIN, merge=0.6), OWN, wide)
    assert moved.merge == background._HIGHEST < 1


def test_the_background_of_the_default_model_is_shipped():
    file = files("clustering.models").joinpath(f"{DEFAULT_MODEL}.background.toml")
    assert asdict(background.reference_background()) == tomllib.loads(file.read_text("utf-8"))
    assert background.reference_calibration() == load_calibration(DEFAULT_MODEL)
    assert -0.1 < background.reference_background().mean < 0.1
