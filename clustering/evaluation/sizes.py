"""How many stories a partition has, and of which sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clustering.evaluation.scores import codes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Each band reaches to just below the next; together they hold every size.
BAND_STARTS = (1, 2, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, slots=True)
class SizeBand:
    """Clusters of about one size.

    Attributes:
        least: fewest articles of such a cluster.
        most: most articles; None for the last band, which is open.
        stories: how many clusters there are.
        articles: how many articles they hold together.
    """

    least: int
    most: int | None
    stories: int
    articles: int


@dataclass(frozen=True, slots=True)
class PartitionShape:
    """How many stories a partition has and how large they are.

    Attributes:
        stories: clusters of two or more articles.
        singletons: clusters of one article.
        mean_size: articles in an average story of two or more; 0 where there is none.
        largest: articles in the largest cluster.
        largest_share: `largest` over all articles, in (0, 1].
        bands: the distribution of sizes, smallest first, empty bands included.
    """

    stories: int
    singletons: int
    mean_size: float
    largest: int
    largest_share: float
    bands: tuple[SizeBand, ...]


def partition_shape(labels: ArrayLike) -> PartitionShape:
    """Return how many clusters `labels` of shape (n,) make, and of which sizes.

    Raises:
        ValueError: labels are none, or not one flat array.
    """
    sizes = np.bincount(codes(labels))
    stories = sizes[sizes > 1]
    band = np.searchsorted(BAND_STARTS, sizes, side="right") - 1
    counts = np.bincount(band, minlength=len(BAND_STARTS))
    articles = np.bincount(band, weights=sizes, minlength=len(BAND_STARTS))
    ends = (*(start - 1 for start in BAND_STARTS[1:]), None)
    return PartitionShape(
        stories=int(stories.size),
        singletons=int(sizes.size - stories.size),
        mean_size=float(stories.mean()) if stories.size else 0.0,
        largest=int(sizes.max()),
        largest_share=float(sizes.max() / sizes.sum()),
        bands=tuple(
            SizeBand(least, most, int(count), int(held))
            for least, most, count, held in zip(BAND_STARTS, ends, counts, articles, strict=True)
        ),
    )
