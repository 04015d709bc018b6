"""Which pass placed how many articles, and how well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clustering.evaluation.scores import PRF, bcubed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

UNPLACED = "none"


@dataclass(frozen=True, slots=True)
class PassShare:
    """The articles that one pass placed.

    Attributes:
        name: the pass as the output gives it; `none` for articles in no story.
        articles: how many scored articles it placed.
        share: `articles` over all scored articles, in (0, 1].
        bcubed: mean over these articles; their clusters stay whole.
    """

    name: str
    articles: int
    share: float
    bcubed: PRF


def by_pass(
    gold: ArrayLike, predicted: ArrayLike, passes: Sequence[str | None]
) -> tuple[PassShare, ...]:
    """Score the articles of each pass, the pass that placed most first; equal counts by name.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).
        passes: name of the pass that placed each article, length n; None for those in no story.

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    names = np.array([name or UNPLACED for name in passes])
    if len(names) != np.size(gold):
        message = f"{np.size(gold)} articles but {len(names)} passes"
        raise ValueError(message)
    found, counts = np.unique(names, return_counts=True)
    return tuple(
        PassShare(
            name=str(found[place]),
            articles=int(counts[place]),
            share=float(counts[place] / len(names)),
            bcubed=bcubed(gold, predicted, only=names == found[place]),
        )
        for place in np.argsort(-counts, kind="stable")
    )
