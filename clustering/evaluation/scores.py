"""Scores of a predicted partition against a gold partition, from contingency counts alone.

Every function takes two label arrays of one length, `gold` and `predicted`, of shape (n,): entry
i of each names the cluster of article i. Labels may be integers or strings; only which of them
are equal matters. An article that is in no story is a cluster of its own and needs a label of its
own. Memory grows with n, never with n squared.

Sources: B-cubed is Bagga and Baldwin (1998), "Entity-based cross-document coreferencing using the
vector space model"; why it is the one to trust is Amigó et al. (2009), "A comparison of extrinsic
clustering evaluation metrics based on formal constraints". Adjusted mutual information is Vinh,
Epps and Bailey (2010), "Information theoretic measures for clusterings comparison".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class PRF:
    """Precision, recall and their harmonic mean, each in [0, 1].

    Attributes:
        precision: share of what was joined that belongs together.
        recall: share of what belongs together that was joined.
        f1: harmonic mean of the two; 0 where both are 0.
    """

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class PairScore(PRF):
    """Precision, recall and F1 over pairs of articles, with the counts they come from.

    With no pair to judge there is no mistake: precision is 1 where nothing was joined, recall is
    1 where gold joins nothing.

    Attributes:
        gold_pairs: pairs that gold has in one story.
        predicted_pairs: pairs that the output has in one story.
        common_pairs: pairs that both have.
    """

    gold_pairs: int
    predicted_pairs: int
    common_pairs: int


@dataclass(frozen=True, slots=True)
class Contingency:
    """Two partitions of n articles, counted: G gold clusters, P predicted, C non-empty cells.

    Attributes:
        gold_sizes: articles of each gold cluster, int64 (G,).
        predicted_sizes: articles of each predicted cluster, int64 (P,).
        cell_sizes: articles that share a gold and a predicted cluster, int64 (C,).
        cell_gold: gold cluster of each cell, int64 (C,).
        cell_predicted: predicted cluster of each cell, int64 (C,).
        article_cell: cell of each article, int64 (n,).
    """

    gold_sizes: NDArray[np.int64]
    predicted_sizes: NDArray[np.int64]
    cell_sizes: NDArray[np.int64]
    cell_gold: NDArray[np.int64]
    cell_predicted: NDArray[np.int64]
    article_cell: NDArray[np.int64]


def prf(precision: float, recall: float) -> PRF:
    """Return precision and recall with their F1."""
    return PRF(precision, recall, _harmonic_mean(precision, recall))


def pair_score(gold_pairs: int, predicted_pairs: int, common_pairs: int) -> PairScore:
    """Return the score of `common_pairs` found, out of `gold_pairs`, among `predicted_pairs`."""
    precision = common_pairs / predicted_pairs if predicted_pairs else 1.0
    recall = common_pairs / gold_pairs if gold_pairs else 1.0
    f1 = _harmonic_mean(precision, recall)
    return PairScore(precision, recall, f1, gold_pairs, predicted_pairs, common_pairs)


def codes(labels: ArrayLike) -> NDArray[np.int64]:
    """Number the labels from 0, equal labels alike.

    Args:
        labels: integers or strings, shape (n,).

    Returns:
        int64 (n,), values 0 to (number of distinct labels - 1).

    Raises:
        ValueError: labels are none, or not one flat array.
    """
    array = np.asarray(labels)
    if array.ndim != 1 or array.size == 0:
        message = f"labels must be a flat array of at least one article, not of shape {array.shape}"
        raise ValueError(message)
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def contingency(gold: ArrayLike, predicted: ArrayLike) -> Contingency:
    """Count how the clusters of two partitions overlap.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    rows, columns = codes(gold), codes(predicted)
    if rows.size != columns.size:
        message = f"{rows.size} gold labels but {columns.size} predicted ones"
        raise ValueError(message)
    width = int(columns.max()) + 1
    cells, article_cell, sizes = np.unique(
        rows * width + columns, return_inverse=True, return_counts=True
    )
    return Contingency(
        gold_sizes=np.bincount(rows).astype(np.int64),
        predicted_sizes=np.bincount(columns).astype(np.int64),
        cell_sizes=sizes.astype(np.int64),
        cell_gold=cells // width,
        cell_predicted=cells % width,
        article_cell=article_cell.astype(np.int64),
    )


def bcubed_by_article(
    gold: ArrayLike, predicted: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return B-cubed precision and recall of each article (Bagga and Baldwin 1998).

    An article's precision is the share of its predicted cluster that is of its gold story, its
    recall the share of its gold story that is in its predicted cluster; it counts itself in both.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).

    Returns:
        Precision and recall, float64 (n,) each, values in (0, 1].

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    table = contingency(gold, predicted)
    precision = table.cell_sizes / table.predicted_sizes[table.cell_predicted]
    recall = table.cell_sizes / table.gold_sizes[table.cell_gold]
    return precision[table.article_cell], recall[table.article_cell]


def bcubed(gold: ArrayLike, predicted: ArrayLike, only: NDArray[np.bool_] | None = None) -> PRF:
    """Return B-cubed precision, recall and F1, the mean over articles.

    F1 is taken of the two means, as Amigó et al. (2009) do, not averaged over articles.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).
        only: bool (n,), the articles to average over. The clusters stay whole: an article left
            out of the mean still spoils the precision of one that was joined with it.

    Raises:
        ValueError: the arrays are empty, not flat, not of one length, or `only` selects nothing.
    """
    precision, recall = bcubed_by_article(gold, predicted)
    if only is not None:
        precision, recall = precision[only], recall[only]
    if precision.size == 0:
        message = "no article is selected to average over"
        raise ValueError(message)
    return prf(float(precision.mean()), float(recall.mean()))


def in_gold_stories(gold: ArrayLike) -> NDArray[np.bool_]:
    """Say of each article whether its gold story has two articles or more, bool (n,)."""
    rows = codes(gold)
    several: NDArray[np.bool_] = (np.bincount(rows) > 1)[rows]
    return several


def pairwise(gold: ArrayLike, predicted: ArrayLike) -> PairScore:
    """Return precision, recall and F1 over all pairs of articles.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    table = contingency(gold, predicted)
    return pair_score(
        _pairs(table.gold_sizes), _pairs(table.predicted_sizes), _pairs(table.cell_sizes)
    )


def adjusted_mutual_information(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Return mutual information adjusted for chance: 1 for equal partitions, about 0 for random.

    AMI = (MI - E[MI]) / (mean(H(gold), H(predicted)) - E[MI]), with the arithmetic mean and the
    exact expectation over random partitions with the same cluster sizes (Vinh et al. 2010).

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).

    Returns:
        At most 1; slightly below 0 where the partitions agree less than chance would.

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    table = contingency(gold, predicted)
    if table.gold_sizes.size == table.predicted_sizes.size == table.cell_sizes.size:
        return 1.0  # equal partitions; where both are blobs or all singletons the ratio is 0 / 0
    expected = _expected_information(table.gold_sizes, table.predicted_sizes)
    information = _mutual_information(table)
    ceiling = (_entropy(table.gold_sizes) + _entropy(table.predicted_sizes)) / 2
    return (information - expected) / (ceiling - expected)


def _harmonic_mean(one: float, other: float) -> float:
    total = one + other
    return 2 * one * other / total if total else 0.0


def _pairs(sizes: NDArray[np.int64]) -> int:
    return int((sizes * (sizes - 1) // 2).sum())


def _entropy(sizes: NDArray[np.int64]) -> float:
    """Return the entropy of a partition in nats."""
    shares = sizes / sizes.sum()
    return -float((shares * np.log(shares)).sum())


def _mutual_information(table: Contingency) -> float:
    """Return the mutual information of two partitions in nats."""
    total = table.cell_sizes.sum()
    gold = table.gold_sizes[table.cell_gold]
    predicted = table.predicted_sizes[table.cell_predicted]
    logs = np.log(table.cell_sizes) + np.log(total) - np.log(gold) - np.log(predicted)
    return float((table.cell_sizes / total * logs).sum())


def _expected_information(gold: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Return the expected mutual information, in nats, of random partitions with these sizes.

    The expectation of a cell depends on the sizes of its two clusters alone, so it is worked out
    once for each pair of distinct sizes. n articles have at most sqrt(2n) distinct sizes, and
    stories mostly far fewer; one term for each pair of clusters would be billions where there are
    many singletons.
    """
    from scipy.special import gammaln  # noqa: PLC0415 - scipy is loaded only when scoring

    total = int(gold.sum())
    log_factorial = gammaln(np.arange(total + 1) + 1.0)
    fewer, more = sorted(
        (np.unique(gold, return_counts=True), np.unique(predicted, return_counts=True)),
        key=lambda sizes: sizes[0].size,
    )
    return sum(
        int(count) * float(more[1] @ _expected_cells(int(size), more[0], total, log_factorial))
        for size, count in zip(*fewer, strict=True)
    )


def _expected_cells(
    size: int,
    others: NDArray[np.int64],
    total: int,
    log_factorial: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what a cell adds to the expected information, in nats.

    Args:
        size: articles of the one cluster.
        others: distinct sizes of the other cluster, int64 (m,).
        total: number of articles.
        log_factorial: ln(k!) for k from 0 to `total`, float64 (total + 1,).

    Returns:
        The mean over the hypergeometric distribution of the overlap, float64 (m,).
    """
    lowest = np.maximum(1, size + others - total)
    lengths = np.minimum(size, others) - lowest + 1
    ends = np.cumsum(lengths)
    other = np.repeat(others, lengths)
    overlap = np.arange(ends[-1]) - np.repeat(ends - lengths - lowest, lengths)
    log_chance = (
        (log_factorial[size] + log_factorial[total - size] - log_factorial[total])
        + (log_factorial[other] + log_factorial[total - other] - log_factorial[overlap])
        - (log_factorial[size - overlap] + log_factorial[other - overlap])
        - log_factorial[total - size - other + overlap]
    )
    gain = np.log(overlap) + np.log(total) - np.log(size) - np.log(other)
    terms = overlap / total * gain * np.exp(log_chance)
    return np.add.reduceat(terms, ends - lengths)
