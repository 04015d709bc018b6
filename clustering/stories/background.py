"""Thresholds for a model that none were measured for, from what unrelated articles look like in its space.

Each model has a scale of its own: unrelated titles have a cosine of .79 in one space and of .01 in
another. A threshold of the default model is taken over at the same standard score: as many standard
deviations above the mean of its background as it has in its own.

Why standard scores and not quantiles: thresholds lie far in the tail, where a quantile tells how
many pairs of the corpus are of one story rather than what the model does. Of one article a story
instead of all, the .98 quantile of NTREX falls from .303 to .208, 3.5 standard deviations from .402
to .298; on OG2021 from .270 to .232 and from .387 to .342. One threshold, the best of OG2021, NTREX
and ECB+ together in the aligned space of multilingual-e5-small, carried over to other spaces of the
same vectors (raw; less their mean; less their mean and the span of their languages), mean pairwise
F1 within 24 hours, pairs of the background at least 96 hours apart where there are such:

    carried over by             raw    mean   span
    standard score              .630   .663   .725
    quantile                    .636   .661   .719
    median and 16th, 84th       .534   .626   .699
    best single threshold       .635   .649   .705
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from clustering.stories.calibration import Calibration, load_calibration

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from clustering.store.session import Session

# The model whose thresholds are carried over, as it is the only one that they were measured for.
REFERENCE_MODEL = "multilingual-e5-small"
# From 500 articles the standard deviation is known to .002 (30 samples of OG2021, NTREX and ECB+).
LEAST_ARTICLES = 500
SAMPLE_ARTICLES = 1000
# Articles further apart can be in one story only by way of others.
FAR_HOURS = 96.0
LEAST_FAR_PAIRS = 10_000
_HIGHEST = 0.99
_BEGINNING = datetime(1, 1, 2, tzinfo=UTC)

# How each attribute of `Calibration` is carried over; the rest have no scale of similarity.
POINTS = ("match", "attach", "link", "merge", "cohesion_prior", "event_link")
DISTANCES = (
    "time_penalty",
    "language_penalty",
    "chain_slack",
    "merge_size_penalty",
    "event_time_penalty",
)


@dataclass(frozen=True, slots=True)
class Background:
    """Cosines of articles that have nothing to do with each other, in one space.

    Attributes:
        mean: their mean.
        deviation: their standard deviation.
        articles: how many articles the space had when they were measured.
    """

    mean: float
    deviation: float
    articles: int


def measure(vectors: NDArray[np.float32], hours: NDArray[np.float64], articles: int) -> Background:
    """Measure the background on a sample.

    Args:
        vectors: aligned unit vectors of n articles, at least 2, of shape (n, dimension).
        hours: their times, of shape (n,).
        articles: how many articles they were drawn from.

    Returns:
        Mean and standard deviation over pairs at least `FAR_HOURS` apart, or over all pairs where
        there are too few such.
    """
    one, other = np.triu_indices(len(vectors), 1)
    cosines = (vectors @ vectors.T)[one, other].astype(np.float64)
    far = np.abs(hours[one] - hours[other]) >= FAR_HOURS
    if far.sum() >= LEAST_FAR_PAIRS:
        cosines = cosines[far]
    return Background(float(cosines.mean()), float(cosines.std()), articles)


def carried_over(calibration: Calibration, own: Background, other: Background) -> Calibration:
    """Return thresholds for another space at the standard scores that they have in their own.

    Args:
        calibration: thresholds of a space.
        own: background of that space.
        other: background of the space that thresholds are wanted for.
    """
    ratio = other.deviation / own.deviation
    points = {
        name: min(other.mean + (getattr(calibration, name) - own.mean) * ratio, _HIGHEST)
        for name in POINTS
    }
    return replace(
        calibration,
        **points,
        **{name: getattr(calibration, name) * ratio for name in DISTANCES},
    )


def reference_calibration() -> Calibration:
    """Return the calibration that others are carried over from."""
    return load_calibration(REFERENCE_MODEL)


def reference_background() -> Background:
    """Return the background of the reference model's aligned space."""
    file = files("clustering.models").joinpath(f"{REFERENCE_MODEL}.background.toml")
    values: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
    return Background(**values)


def measure_space(session: Session, articles: int) -> Background:
    """Measure the background of the session's space on a sample of its latest articles.

    Args:
        session: bound to a space that has at least 2 articles.
        articles: how many of the latest are drawn from.
    """
    since = session.value("time_of_latest", articles=articles)
    rows = session.rows("background_sample", since=since or _BEGINNING, most=SAMPLE_ARTICLES)
    vectors = np.stack([row.aligned.to_numpy() for row in rows]).astype(np.float32)
    hours = np.array([row.event_time.timestamp() / 3600 for row in rows])
    return measure(vectors, hours, articles)


def load_background(session: Session, space: str) -> Background | None:
    """Return the background that was measured of a space, or None."""
    (row,) = session.rows("space_state", space=space)
    if row.background_articles is None:
        return None
    return Background(row.background_mean, row.background_deviation, row.background_articles)


def store_background(session: Session, space: str, background: Background) -> None:
    """Remember the background of a space."""
    session.execute("set_background", space=space, **asdict(background))
