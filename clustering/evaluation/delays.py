"""How long a story is under way before the output has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clustering.evaluation.scores import contingency

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Delay:
    """Hours from the first article of a gold story to the moment when the story is found.

    A story is found when two of its articles are first together in one predicted story: at the
    time of the second-earliest of its articles there, in whichever predicted story that is
    earliest. Times are those of the articles; what a run adds until it looks (up to an hour where
    it runs hourly) is not in them. Stories that were merged count as one from the beginning, as the
    output does not say when they were.

    Quantiles are taken over all `stories`, those never found as infinitely late, so that finding
    fewer cannot make a figure better. They are observed values (the smallest that the share of
    stories does not exceed), not interpolated ones.

    Attributes:
        stories: gold stories with two or more dated articles.
        found: how many of them are ever found.
        median_hours: None where fewer than half are found.
        p90_hours: nine in ten are found within so many hours; None where fewer are found at all.
        earliest_median_hours: median of what perfect output would have: hours to the second article.
        undated: scored articles without a time, which are left out.
    """

    stories: int
    found: int
    median_hours: float | None
    p90_hours: float | None
    earliest_median_hours: float
    undated: int


def delay(gold: ArrayLike, predicted: ArrayLike, hours: NDArray[np.float64]) -> Delay | None:
    """Return how long gold stories wait to be found; None where none has two dated articles.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).
        hours: time of each article in hours from any origin, shape (n,); NaN where not known.

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    dated = ~np.isnan(hours)
    if not dated.any():
        return None
    table = contingency(np.asarray(gold)[dated], np.asarray(predicted)[dated])
    cell, at = table.article_cell, hours[dated]
    first = _ranked(table.cell_gold[cell], at, 0)
    second = _ranked(table.cell_gold[cell], at, 1)
    found = np.full(len(first), np.inf)
    np.minimum.at(found, table.cell_gold, _ranked(cell, at, 1))
    several = np.isfinite(second)
    if not several.any():
        return None
    waited = (found - first)[several]
    return Delay(
        stories=int(several.sum()),
        found=int(np.isfinite(waited).sum()),
        median_hours=_quantile(waited, 0.5),
        p90_hours=_quantile(waited, 0.9),
        earliest_median_hours=float(
            np.quantile((second - first)[several], 0.5, method="inverted_cdf")
        ),
        undated=int((~dated).sum()),
    )


def _ranked(group: NDArray[np.int64], hours: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
    """Return the time at a rank, from 0, of each group 0 to m - 1; infinite in groups of fewer; (m,)."""
    sizes = np.bincount(group)
    ordered = np.append(hours[np.lexsort((hours, group))], np.inf)
    starts = np.cumsum(sizes) - sizes
    return ordered[np.where(sizes > rank, starts + rank, len(hours))]


def _quantile(waited: NDArray[np.float64], share: float) -> float | None:
    value = float(np.quantile(waited, share, method="inverted_cdf"))
    return value if np.isfinite(value) else None
