"""What each threshold on pairs of articles would give: precision, recall, F1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ThresholdCurve:
    """Scores of pairs at each of t thresholds, ascending; all float64 (t,).

    Attributes:
        thresholds: a pair counts as one story where its similarity is at least this.
        precision: share of these pairs that are; 1 where there are none.
        recall: share of the pairs of one story that are found.
    """

    thresholds: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]

    @property
    def f1(self) -> NDArray[np.float64]:
        """Harmonic mean of precision and recall, 0 where both are."""
        total = self.precision + self.recall
        return np.divide(
            2 * self.precision * self.recall, total, out=np.zeros_like(total), where=total > 0
        )

    @property
    def best(self) -> tuple[float, float]:
        """The lowest threshold with the highest F1, and that F1."""
        place = int(self.f1.argmax())
        return float(self.thresholds[place]), float(self.f1[place])


def threshold_curve(
    similarities: NDArray[np.float32], same: NDArray[np.bool_], steps: int = 200
) -> ThresholdCurve:
    """Return precision and recall of pairs over evenly spaced thresholds.

    Args:
        similarities: of n pairs, float (n,).
        same: whether both articles of a pair tell one story, bool (n,).
        steps: how many thresholds, from the least to the greatest similarity.

    Raises:
        ValueError: there is no pair of one story.
    """
    if not same.any():
        raise ValueError("no pair is of one story")
    thresholds = np.linspace(float(similarities.min()), float(similarities.max()), steps)
    ranked, right = np.sort(similarities), np.sort(similarities[same])
    found = len(ranked) - np.searchsorted(ranked, thresholds, side="left")
    correct = len(right) - np.searchsorted(right, thresholds, side="left")
    precision = np.divide(correct, found, out=np.ones(steps), where=found > 0)
    return ThresholdCurve(thresholds, precision, correct / len(right))
