"""Looking for thresholds: a random search that narrows, and the middle of the plateau that it finds.

The cross-entropy method (Rubinstein 1999): settings are drawn around a centre, the best of them say
where the next are drawn and how widely. What is taken in the end is not the best single setting, which
is the luckiest one, but the one whose surroundings score best.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clustering.errors import CalibrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from clustering.stories.calibration import Calibration

# How far each value may reasonably move at first: a few steps take the scores off any plateau seen.
SCALES: Mapping[str, float] = MappingProxyType(
    {
        "match": 0.03,
        "attach": 0.03,
        "link": 0.03,
        "merge": 0.03,
        "time_penalty": 0.01,
        "language_penalty": 0.02,
        "chain_slack": 0.02,
        "match_cohesion_penalty": 0.05,
        "merge_cohesion_penalty": 0.1,
        "merge_size_penalty": 0.006,
        "story_gap_hours": 6.0,
        "story_age_hours": 18.0,
        "centroid_members": 30.0,
    }
)
# What pairs of articles can tell; they say nothing of stories.
PAIR_SCALES = MappingProxyType(
    {name: SCALES[name] for name in ("link", "time_penalty", "language_penalty")}
)
_TIED = ("match", "attach", "merge")
_ELITE_SHARE = 0.25
_KEPT_SPREAD = 0.3  # of the former spread: narrowing too fast would settle on the first hill
_LEAST_SPREAD = 0.2  # of a scale: a plateau narrower than this is none
SURROUNDING_TRIALS = 8


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to search: `rounds` that narrow, `trials` in each."""

    rounds: int = 8
    trials: int = 40


class Trial(NamedTuple):
    """A setting that was tried and what it scored; higher is better."""

    calibration: Calibration
    score: float


@dataclass(frozen=True, slots=True)
class Plateau:
    """The setting that a search settles on.

    Attributes:
        calibration: the middle.
        score: what it scored.
        surrounding: mean score of it and the settings nearest to it.
        least: lowest score among those.
    """

    calibration: Calibration
    score: float
    surrounding: float
    least: float


def search(
    try_all: Callable[[Sequence[Calibration]], Sequence[float]],
    start: Calibration,
    effort: Effort,
    *,
    scales: Mapping[str, float] = SCALES,
    seed: int = 0,
) -> list[Trial]:
    """Return every setting tried, in order; `start` is the first.

    Args:
        try_all: scores n settings; higher is better.
        start: where the search begins, and what gives the values that are not searched.
        effort: how many times the search narrows, and the settings tried each time.
        scales: the values searched, and how far each may move at first.
        seed: of the random draws; the same seed tries the same settings.
    """
    random = np.random.default_rng(seed)
    centre, spread = _values(start, scales), np.array(list(scales.values()))
    found: list[Trial] = []
    for _ in range(effort.rounds):
        drawn = [start] if not found else []
        while len(drawn) < effort.trials:
            values = np.round(centre + spread * random.standard_normal(len(spread)), 4).tolist()
            drawn += _calibration(start, dict(zip(scales, values, strict=True)))
        found += map(Trial, drawn, try_all(drawn))
        centre, spread = _narrowed(
            found, spread, max(2, round(_ELITE_SHARE * effort.trials)), scales
        )
    return found


def plateau(trials: Sequence[Trial], scales: Mapping[str, float] = SCALES) -> Plateau:
    """Return the trial whose surroundings score best.

    Args:
        trials: one or more.
        scales: the values that tell how near two settings are, each with its unit.
    """
    points = np.stack([_values(trial.calibration, scales) for trial in trials])
    points /= list(scales.values())
    scores = np.array([trial.score for trial in trials])
    most = min(SURROUNDING_TRIALS, len(trials))
    around = [np.argsort(((points - p) ** 2).sum(axis=1), kind="stable")[:most] for p in points]
    means = np.array([scores[near].mean() for near in around])
    best = int(means.argmax())
    return Plateau(
        trials[best].calibration,
        float(scores[best]),
        float(means[best]),
        float(scores[around[best]].min()),
    )


def tied(start: Calibration, found: Calibration) -> Calibration:
    """Return what a search over pairs found, with the thresholds of stories as far from `link` as before.

    Args:
        start: where the search began.
        found: where it ended.

    Raises:
        CalibrationError: that puts a threshold out of its range.
    """
    moved = found.link - start.link
    return replace(found, **{name: round(getattr(start, name) + moved, 4) for name in _TIED})


def _values(calibration: Calibration, scales: Mapping[str, float]) -> NDArray[np.float64]:
    return np.array([getattr(calibration, name) for name in scales], np.float64)


def _calibration(start: Calibration, changed: dict[str, float]) -> list[Calibration]:
    """Return the calibration of some values, or nothing where one of them is out of its range."""
    if "centroid_members" in changed:
        changed["centroid_members"] = round(changed["centroid_members"])
    try:
        return [replace(start, **changed)]  # type: ignore[arg-type] # members are whole
    except CalibrationError:
        return []


def _narrowed(
    found: Sequence[Trial], spread: NDArray[np.float64], elite: int, scales: Mapping[str, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return where to draw next, and how widely."""
    best = sorted(found, key=lambda trial: -trial.score)[:elite]
    points = np.stack([_values(trial.calibration, scales) for trial in best])
    least = _LEAST_SPREAD * np.array(list(scales.values()))
    kept = _KEPT_SPREAD * spread + (1 - _KEPT_SPREAD) * points.std(axis=0)
    return points.mean(axis=0), np.maximum(kept, least)
