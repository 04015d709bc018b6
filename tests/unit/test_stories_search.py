from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from plain_calibration import PLAIN

from clustering.errors import CalibrationError
from clustering.stories.calibration import Calibration
from clustering.stories.search import PAIR_SCALES, SCALES, Effort, Trial, plateau, search, tied

START = replace(
    PLAIN,
    time_penalty=0.05,
    language_penalty=0.05,
    match_cohesion_penalty=0.2,
    merge_cohesion_penalty=0.5,
    merge_size_penalty=0.02,
    centroid_members=100,
    story_gap_hours=24,
    story_age_hours=72,
)


def hill(calibration, match=0.58, merge=0.44) -> float:
    """A smooth score that is 1 at one place."""
    return 1 - 10 * (calibration.match - match) ** 2 - 10 * (calibration.merge - merge) ** 2


def hills(calibrations):
    return [hill(calibration) for calibration in calibrations]


def test_only_values_of_a_calibration_are_searched():
    names = {field.name for field in fields(Calibration)}
    assert set(SCALES) < names
    # Events need labels of their own: no corpus of stories has them.
    events = {name for name in names if name.startswith("event_")}
    assert names - set(SCALES) - events == {"neighbours", "cohesion_prior"}


def test_the_start_is_tried_first_and_the_rest_are_other_settings():
    found = search(hills, START, Effort(2, 10))
    assert found[0] == Trial(START, hill(START))
    assert len({trial.calibration for trial in found}) == len(found) == 20


def test_a_search_climbs():
    found = search(hills, START, Effort(8, 30))
    best = plateau(found)
    assert best.score > 0.99 > hill(START)
    assert best.calibration.match == pytest.approx(0.58, abs=0.03)
    assert best.calibration.merge == pytest.approx(0.44, abs=0.03)


def test_a_search_is_the_same_with_the_same_seed():
    one, other = (search(hills, START, Effort(3, 8), seed=4) for _ in range(2))
    assert one == other
    assert search(hills, START, Effort(3, 8), seed=5) != one


def test_settings_out_of_range_are_never_tried():
    edge = replace(START, time_penalty=0, chain_slack=0, centroid_members=1, story_gap_hours=0)
    for trial in search(lambda tried: [0.0] * len(tried), edge, Effort(2, 12)):
        assert trial.calibration.time_penalty >= 0
        assert isinstance(trial.calibration.centroid_members, int)
        assert trial.calibration.centroid_members >= 1


def test_what_is_not_searched_stays():
    for trial in search(hills, START, Effort(2, 10)):
        assert trial.calibration.neighbours == START.neighbours
        assert trial.calibration.cohesion_prior == START.cohesion_prior


def test_the_plateau_is_broad_and_not_the_best_single_setting():
    """Thirty good settings around one place, and a better one alone on a peak between bad ones."""
    random = np.random.default_rng(1)
    good = [
        Trial(replace(START, match=float(0.6 + 0.005 * random.standard_normal())), 0.8)
        for _ in range(30)
    ]
    bad = [
        Trial(replace(START, match=float(0.3 + 0.005 * random.standard_normal())), 0.2)
        for _ in range(30)
    ]
    peak = Trial(replace(START, match=0.3), 0.95)
    found = plateau([*bad, peak, *good])
    assert found.calibration.match == pytest.approx(0.6, abs=0.03)
    assert (found.score, found.surrounding, found.least) == (0.8, pytest.approx(0.8), 0.8)


def test_the_plateau_of_one_trial_is_it():
    found = plateau([Trial(START, 0.7)])
    assert (found.calibration, found.score, found.surrounding, found.least) == (
        START,
        0.7,
        0.7,
        0.7,
    )


def test_the_middle_of_a_plateau_between_two_cliffs():
    def cliffs(calibrations):
        return [float(0.45 < c.match < 0.55) for c in calibrations]

    found = plateau(search(cliffs, START, Effort(6, 40)))
    assert found.least == 1.0
    assert 0.46 < found.calibration.match < 0.54


def test_pairs_move_only_what_they_tell_of():
    found = search(hills, START, Effort(2, 20), scales=PAIR_SCALES)
    untouched = {name: getattr(START, name) for name in set(SCALES) - set(PAIR_SCALES)}
    for trial in found:
        assert {name: getattr(trial.calibration, name) for name in untouched} == untouched
    assert len({trial.calibration.link for trial in found}) > 10


def test_thresholds_of_stories_follow_link():
    followed = tied(START, replace(START, link=START.link + 0.07, time_penalty=0.02))
    for name in ("match", "attach", "link", "merge"):
        assert getattr(followed, name) == pytest.approx(getattr(START, name) + 0.07)
    assert followed.time_penalty == 0.02
    with pytest.raises(CalibrationError, match="must lie between"):
        tied(replace(START, link=-0.9), replace(START, link=0.9))
