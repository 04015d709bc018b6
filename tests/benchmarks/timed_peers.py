"""Whole-corpus HDBSCAN on the vectors that the passes get: time and B-cubed of both."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from sklearn.cluster import HDBSCAN

from clustering.evaluation.scores import bcubed, codes

if TYPE_CHECKING:
    from stream import Batch


def hdbscan(batch: Batch) -> dict[str, float]:
    """Cluster a day at once with scikit-learn's HDBSCAN, smallest cluster of two, on unit vectors."""
    start = time.perf_counter()
    labels = HDBSCAN(min_cluster_size=2, copy=True).fit_predict(batch.vectors)
    return {
        "hdbscan_seconds": time.perf_counter() - start,
        "hdbscan_bcubed": bcubed(batch.stories, singletons(labels)).f1,
    }


def singletons(labels: np.ndarray) -> np.ndarray:
    """Give each article without a story (-1 or None) a story of its own."""
    named = np.array([f"s{label}" for label in labels], dtype=object)
    alone = np.array([label is None or label == -1 for label in labels])
    named[alone] = [f"alone {place}" for place in np.flatnonzero(alone)]
    return codes(named.tolist())
