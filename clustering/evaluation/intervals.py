"""How far a score might be off, had the corpus held other stories."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clustering.evaluation.scores import bcubed_by_article, codes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

SAMPLES = 1000


class Interval(NamedTuple):
    """The middle 95 % of a score over samples: its ends."""

    low: float
    high: float


def bcubed_interval(
    gold: ArrayLike, predicted: ArrayLike, *, samples: int = SAMPLES, seed: int = 0
) -> Interval:
    """Return the interval of B-cubed F1 under resampling of gold stories (Efron 1979).

    Whole stories are drawn with replacement, as articles of one story are right or wrong together:
    drawn one by one they would make any score look sure. Precision and recall of an article stay
    those of the whole partition.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).
        samples: how many times the stories are drawn.
        seed: of the draws.

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    story = codes(gold)
    precision, recall = bcubed_by_article(gold, predicted)
    sums = np.stack(
        [np.bincount(story, part) for part in (np.ones_like(recall), precision, recall)]
    )
    drawn = _drawn(sums.shape[1], samples, seed) @ sums.T
    means = drawn[:, 1:] / drawn[:, :1]
    scores = 2 * means.prod(axis=1) / means.sum(axis=1)
    low, high = np.quantile(scores, [0.025, 0.975])
    return Interval(float(low), float(high))


def _drawn(stories: int, samples: int, seed: int) -> NDArray[np.int64]:
    """Return how often each story is in each sample, of shape (samples, stories)."""
    random = np.random.default_rng(seed)
    return random.multinomial(stories, np.full(stories, 1 / stories), size=samples)
