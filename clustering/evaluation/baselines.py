"""What the engine is measured against: the published two passes, and average linkage of a whole corpus.

Both take vectors and times and return labels, with no database and nothing of the engine in
between, so that they can be run in any space. They are no part of the pipeline.

Sources: the two passes are those that 3mins.news describes (hourly; threshold 0.7, stories at most
36 hours old and 18 hours quiet, mean of the 3 latest articles, batches of 200). Average linkage is
the unweighted pair group method of Sokal and Michener (1958), as scipy has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

PUBLISHED_THRESHOLD = 0.7
GAP_HOURS = 18.0
AGE_HOURS = 36.0
CENTROID_MEMBERS = 3
STEP_HOURS = 1.0
BATCH_ARTICLES = 200
# A sweep over all cosines, then around the best so far in finer steps.
SWEEP_STEPS = (0.05, 0.01, 0.0025)
_SMALLEST_NORM = 1e-12
_BLOCK_ROWS = 512


def published_passes(
    vectors: NDArray[np.float32], hours: NDArray[np.float64], threshold: float
) -> NDArray[np.int64]:
    """Cluster a stream with the published two passes.

    Hour by hour, each article of the last 18 hours that is in no story is compared, by cosine, with
    the mean of the 3 latest articles of each live story; the best at or above the threshold takes
    it. What is left is compared with each other, and connected components become stories.

    Args:
        vectors: shape (n, d), of any length but 0.
        hours: time of each article in hours from any origin, shape (n,).
        threshold: least cosine, the same in both passes.

    Returns:
        Labels, int64 (n,); an article in no story has a label of its own.
    """
    stream = _Stream(_unit(vectors), hours, threshold)
    order = np.argsort(hours, kind="stable")
    steps = np.floor(hours[order] / STEP_HOURS)
    for arrived in np.split(order, np.flatnonzero(np.diff(steps)) + 1):
        stream.step(arrived)
    return _alone_apart(stream.labels)


class AverageLinkage:
    """Average linkage of a whole corpus by cosine distance; time plays no part.

    The tree is built once, in 8 bytes for each pair of articles and as much again while it is
    built: 6,782 articles took 400 MB and 4 s on one core.

    Args:
        vectors: shape (n, d), of any length but 0.
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        from scipy.cluster.hierarchy import average  # noqa: PLC0415 - scipy is loaded when needed

        self._articles = len(vectors)
        self._tree = average(_cosine_distances(_unit(vectors))) if len(vectors) > 1 else None

    def labels(self, threshold: float) -> NDArray[np.int64]:
        """Cut the tree where clusters are on average less alike than a threshold.

        Args:
            threshold: least mean cosine of two clusters that are joined.

        Returns:
            Labels, int64 (n,).
        """
        from scipy.cluster.hierarchy import fcluster  # noqa: PLC0415 - as above

        if self._tree is None:
            return np.zeros(self._articles, np.int64)
        cut: NDArray[np.int64] = fcluster(self._tree, 1 - threshold, "distance").astype(np.int64)
        return cut


def best_threshold(score: Callable[[float], float]) -> float:
    """Return the threshold in 0 to 1 with the best score: a sweep in steps of .05, then finer.

    Each finer sweep covers what the one before left on both sides of its best; among equals the
    highest threshold wins.

    Args:
        score: gives the score of a threshold; each threshold is asked for once.
    """
    scores: dict[float, float] = {}
    around, reach = 0.5, 0.5
    for step in SWEEP_STEPS:
        for threshold in _steps(around, reach, step):
            if threshold not in scores:
                scores[threshold] = score(threshold)
        around = max(scores, key=lambda threshold: (scores[threshold], threshold))
        reach = step
    return around


def _steps(around: float, reach: float, step: float) -> Iterator[float]:
    count = round(reach / step)
    for place in range(-count, count + 1):
        threshold = round(around + place * step, 6)
        if 0 <= threshold <= 1:
            yield threshold


class _Stream:
    """The state of the two passes between steps.

    Args:
        vectors: unit vectors, float32 (n, d).
        hours: shape (n,).
        threshold: least cosine.
    """

    def __init__(
        self, vectors: NDArray[np.float32], hours: NDArray[np.float64], threshold: float
    ) -> None:
        most = len(vectors) // 2  # a story has two articles at least
        self.labels = np.full(len(vectors), -1, np.int64)
        self._vectors, self._hours, self._threshold = vectors, hours, threshold
        self._waiting = np.empty(0, np.int64)
        self._recent: list[NDArray[np.int64]] = []
        self._centroids = np.zeros((most, vectors.shape[1]), np.float32)
        self._first = np.full(most, np.inf)
        self._latest = np.full(most, -np.inf)

    def step(self, arrived: NDArray[np.int64]) -> None:
        """Place the articles of one hour, and try again those that wait."""
        oldest = self._hours[arrived].min() - GAP_HOURS
        waiting = self._waiting[self._hours[self._waiting] >= oldest]
        everyone = np.concatenate([waiting, arrived])
        for start in range(0, len(everyone), BATCH_ARTICLES):
            self._match(everyone[start : start + BATCH_ARTICLES])
        self._discover(everyone[self.labels[everyone] < 0])
        self._waiting = everyone[self.labels[everyone] < 0]

    def _match(self, batch: NDArray[np.int64]) -> None:
        live = self._live(self._hours[batch])
        if not live.size:
            return
        scores = self._vectors[batch] @ self._centroids[live].T
        scores[~self._in_window(batch, live)] = -np.inf
        best = scores.argmax(axis=1)
        joins = scores[np.arange(len(batch)), best] >= self._threshold
        for story in np.unique(live[best[joins]]):
            self._grow(int(story), batch[joins][live[best[joins]] == story])

    def _live(self, hours: NDArray[np.float64]) -> NDArray[np.int64]:
        made = len(self._recent)
        quiet = self._latest[:made] < hours.min() - GAP_HOURS
        old = self._first[:made] < hours.min() - AGE_HOURS
        return np.flatnonzero(~quiet & ~old)

    def _in_window(self, batch: NDArray[np.int64], live: NDArray[np.int64]) -> NDArray[np.bool_]:
        hours = self._hours[batch][:, None]
        after, before = hours - self._latest[live], self._first[live] - hours
        inside: NDArray[np.bool_] = (
            (after <= GAP_HOURS) & (before <= GAP_HOURS) & (-before <= AGE_HOURS)
        )
        return inside

    def _discover(self, rest: NDArray[np.int64]) -> None:
        from scipy.sparse import coo_array  # noqa: PLC0415 - scipy is loaded when needed
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415 - as above

        near = self._vectors[rest] @ self._vectors[rest].T >= self._threshold
        apart = np.abs(self._hours[rest][:, None] - self._hours[rest][None, :])
        links = coo_array(near & (apart <= GAP_HOURS))
        count, group = connected_components(links, directed=False)
        for number in np.flatnonzero(np.bincount(group, minlength=count) > 1):
            self._recent.append(np.empty(0, np.int64))
            self._grow(len(self._recent) - 1, rest[group == number])

    def _grow(self, story: int, articles: NDArray[np.int64]) -> None:
        self.labels[articles] = story
        hours = self._hours[articles]
        self._first[story] = min(self._first[story], hours.min())
        self._latest[story] = max(self._latest[story], hours.max())
        members = np.concatenate([self._recent[story], articles])
        latest = np.argsort(self._hours[members], kind="stable")[-CENTROID_MEMBERS:]
        self._recent[story] = members[latest]
        self._centroids[story] = _unit(self._vectors[members[latest]].mean(axis=0)[None])[0]


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = (vectors / np.maximum(lengths, _SMALLEST_NORM)).astype(np.float32)
    return unit


def _alone_apart(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give each article without a label (-1) one of its own."""
    alone = labels < 0
    apart = labels.copy()
    apart[alone] = labels.max(initial=-1) + 1 + np.arange(alone.sum())
    return apart


def _cosine_distances(unit: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return 1 - cosine of each pair in scipy's condensed order, float64 (n * (n - 1) / 2,)."""
    count = len(unit)
    distances = np.empty(count * (count - 1) // 2)
    place = 0
    for start in range(0, count, _BLOCK_ROWS):
        block = 1.0 - unit[start : start + _BLOCK_ROWS] @ unit[start:].T
        for row in range(len(block)):
            tail = block[row, row + 1 :]
            distances[place : place + len(tail)] = tail
            place += len(tail)
    return np.clip(distances, 0, None, out=distances)
