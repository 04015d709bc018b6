"""Baselines by hand: windows, waiting articles, drifting centroids, and the search for a threshold."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from clustering.evaluation.baselines import AverageLinkage, best_threshold, published_passes
from clustering.evaluation.scores import bcubed


def at(*degrees):
    """Unit vectors in a plane, so that cosines are those of angles."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def near(degrees):
    return float(np.cos(np.radians(degrees)))


def labels(degrees, hours, reach):
    return published_passes(at(*degrees), np.array(hours, float), near(reach)).tolist()


def same(found, *places):
    return len({found[place] for place in places}) == 1


def test_two_articles_make_a_story_and_a_third_joins():
    found = labels([0, 5, 8], [0, 0.5, 9], reach=10)
    assert same(found, 0, 1, 2)


def test_articles_in_no_story_have_labels_of_their_own():
    found = labels([0, 90, 180, 270], [0, 0, 1, 2], reach=10)
    assert len(set(found)) == 4
    assert labels([0], [7], reach=10) == [0]


def test_length_of_a_vector_plays_no_part():
    vectors = at(0, 5, 50) * np.array([[3.0], [0.1], [9.0]], np.float32)
    found = published_passes(vectors, np.zeros(3), near(10))
    assert same(found, 0, 1)
    assert not same(found, 1, 2)


@pytest.mark.parametrize(("hour", "joins"), [(18, True), (18.1, False)])
def test_a_story_is_closed_after_eighteen_quiet_hours(hour, joins):
    assert same(labels([0, 1, 2], [0, 0, hour], reach=10), 0, 2) is joins


@pytest.mark.parametrize(("hour", "joins"), [(36, True), (36.1, False)])
def test_a_story_takes_nothing_more_when_it_is_thirty_six_hours_old(hour, joins):
    assert same(labels([0, 1, 2, 3, 4], [0, 0, 15, 30, hour], reach=10), 0, 4) is joins


@pytest.mark.parametrize(("hour", "joins"), [(18, True), (18.1, False)])
def test_an_article_waits_eighteen_hours_for_another(hour, joins):
    assert same(labels([0, 1], [0, hour], reach=10), 0, 1) is joins


def on_a_cone(half_angle, *azimuths):
    """Unit vectors at one angle from the pole, which comes first."""
    around, down = np.radians(azimuths), np.radians(half_angle)
    ring = np.stack(
        [
            np.sin(down) * np.cos(around),
            np.sin(down) * np.sin(around),
            np.full(len(around), np.cos(down)),
        ],
        axis=1,
    )
    return np.vstack([[0, 0, 1], ring]).astype(np.float32)


def test_a_waiting_article_is_tried_again_as_stories_come():
    # The pole is 12 degrees from each of three articles that a chain of 10 degrees joins, and 9
    # from their mean: it joins them in the next hour in which anything arrives.
    vectors = on_a_cone(12, 0, 50, 100)
    first = published_passes(vectors, np.array([0, 1.1, 1.2, 1.3]), near(11)).tolist()
    assert same(first, 1, 2, 3)
    assert not same(first, 0, 1)
    later = np.vstack([vectors, [[0, 0, -1]]]).astype(np.float32)
    found = published_passes(later, np.array([0, 1.1, 1.2, 1.3, 2.5]), near(11)).tolist()
    assert same(found, 0, 1, 2, 3)


def test_a_late_member_does_not_make_a_story_older_than_its_latest():
    # As above, then the pole again at hour 19: 17.7 after the latest, 19 after the late member.
    vectors = on_a_cone(12, 0, 50, 100)
    stream = np.vstack([vectors, [[0, 0, -1]], vectors[:1]]).astype(np.float32)
    found = published_passes(stream, np.array([0, 1.1, 1.2, 1.3, 2.5, 19]), near(11)).tolist()
    assert same(found, 0, 1, 2, 3, 5)


def test_the_wait_is_counted_from_article_to_article_within_an_hour_too():
    # The article at 18.0 keeps the first one waiting; the one at 18.9 comes too late for it.
    assert not same(labels([0, 180, 1], [0, 18.0, 18.9], reach=10), 0, 2)
    assert same(labels([0, 180, 1], [0.9, 18.0, 18.9], reach=10), 0, 2)


def test_components_hang_together_by_links_of_one_hour():
    assert same(labels([0, 9, 18, 27], [0, 0, 0, 0], reach=10), 0, 3)


def test_the_centroid_follows_the_three_latest():
    hours = [0, 0, 1.5, 2.5, 3.5, 4.5]
    # 31 is 15.7 from the mean of 8, 16 and 22, and 21.6 from that of all five.
    assert same(labels([0, 1, 8, 16, 22, 31], hours, reach=16), 0, 5)


def test_the_best_of_two_stories_takes_an_article():
    found = labels([0, 1, 20, 21, 12], [0, 0, 0, 0, 2], reach=15)
    assert same(found, 2, 3, 4)
    assert not same(found, 0, 4)


def test_the_order_of_rows_changes_nothing():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(300, 4)).astype(np.float32)
    hours = 100 * rng.random(300)
    order = rng.permutation(300)
    found = published_passes(vectors, hours, 0.9)
    shuffled = published_passes(vectors[order], hours[order], 0.9)
    assert bcubed(found[order], shuffled).f1 == pytest.approx(1)
    assert 10 < len(set(found.tolist())) < 290


def test_average_linkage_cuts_where_the_mean_falls_below_the_threshold():
    tree = AverageLinkage(at(0, 10, 40, 90))
    assert len(set(tree.labels(1.0).tolist())) == 4
    assert same(tree.labels(near(11)), 0, 1)
    mean = (near(30) + near(40)) / 2
    assert same(tree.labels(mean - 1e-5), 0, 1, 2)
    assert not same(tree.labels(mean + 1e-5), 0, 2)
    assert same(tree.labels(-1.0), 0, 1, 2, 3)


@pytest.mark.parametrize("count", [1, 2])
def test_average_linkage_of_next_to_nothing(count):
    found = AverageLinkage(at(*range(count))).labels(0.5)
    assert found.tolist() == [found[0]] * count
    assert found.dtype == np.int64


@pytest.mark.parametrize("peak", [0, 0.0025, 0.1, 0.4375, 0.7, 0.9825, 1])
def test_the_best_threshold_is_found(peak):
    tried = []

    def score(threshold):
        tried.append(threshold)
        return -abs(threshold - peak)

    assert best_threshold(score) == pytest.approx(peak)
    assert len(tried) == len(set(tried)) <= 40
    assert min(tried) >= 0
    assert max(tried) <= 1


def test_among_equal_thresholds_the_strictest_wins():
    assert best_threshold(lambda threshold: float(0.4 <= threshold <= 0.6)) == pytest.approx(0.6)


def test_a_narrow_peak_beside_a_step_of_the_first_sweep_is_found():
    # Between .88 and .93 only, as with raw vectors of an encoder whose cosines start at .7.
    assert 0.88 <= best_threshold(lambda t: 1 - abs(t - 0.905) if 0.88 < t < 0.93 else 0) < 0.93


def test_baselines_load_no_scipy_before_they_are_used():
    code = (
        "import sys, clustering.evaluation.baselines; print({'scipy', 'torch'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
