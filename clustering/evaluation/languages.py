"""Scores by language: within one, across two, and for each pair of languages.

Pairs of articles are counted in language-by-language tables, so that one sparse product for each
partition gives every figure; no pair of articles is ever looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clustering.evaluation.scores import (
    PRF,
    PairScore,
    bcubed_by_article,
    contingency,
    pair_score,
    prf,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class LanguageScore:
    """How the articles of one language fare among those of all languages.

    Attributes:
        language: tag as gold gives it.
        articles: how many of them were scored.
        bcubed: mean over these articles; their clusters keep their articles of other languages.
    """

    language: str
    articles: int
    bcubed: PRF


@dataclass(frozen=True, slots=True)
class LanguagePairScore:
    """How well the articles of one language are joined with those of another.

    Attributes:
        languages: the two tags, sorted.
        pairs: score over pairs of an article of the one and an article of the other.
    """

    languages: tuple[str, str]
    pairs: PairScore


@dataclass(frozen=True, slots=True)
class PairTables:
    """Pairs of articles in one cluster, by the languages of the two.

    In each table, entry (i, j) with i < j counts pairs of an article in language i and one in
    language j; entry (i, i) counts pairs within language i; below the diagonal all is 0.

    Attributes:
        names: tag of each language, sorted, length m.
        gold: pairs that gold has in one story, int64 (m, m).
        predicted: pairs that the output has in one story, int64 (m, m).
        common: pairs that both have, int64 (m, m).
    """

    names: tuple[str, ...]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    common: NDArray[np.int64]


def pair_tables(gold: ArrayLike, predicted: ArrayLike, languages: Sequence[str]) -> PairTables:
    """Count pairs of articles by language.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).
        languages: language tag of each article, length n.

    Raises:
        ValueError: the labels are empty or not flat, or the three are not of one length.
    """
    table = contingency(gold, predicted)
    _check_length(languages, table.article_cell.size)
    names, language = np.unique(languages, return_inverse=True)
    return PairTables(
        names=tuple(names.tolist()),
        gold=_pairs_by_language(table.cell_gold[table.article_cell], language),
        predicted=_pairs_by_language(table.cell_predicted[table.article_cell], language),
        common=_pairs_by_language(table.article_cell, language),
    )


def same_language(tables: PairTables) -> PairScore:
    """Return the score over pairs of articles in one language."""
    return pair_score(
        *(int(np.trace(pairs)) for pairs in (tables.gold, tables.predicted, tables.common))
    )


def cross_lingual(tables: PairTables) -> PairScore:
    """Return the score over pairs of articles in different languages."""
    return pair_score(
        *(
            int(pairs.sum() - np.trace(pairs))
            for pairs in (tables.gold, tables.predicted, tables.common)
        )
    )


def by_language_pair(tables: PairTables) -> tuple[LanguagePairScore, ...]:
    """Score the pairs of different languages, those that have most gold pairs first.

    Pairs of languages without any gold pair are left out; equal counts are in order of the tags.
    """
    firsts, seconds = np.nonzero(np.triu(tables.gold, k=1))
    order = np.argsort(-tables.gold[firsts, seconds], kind="stable")
    return tuple(
        LanguagePairScore(
            languages=(tables.names[i], tables.names[j]),
            pairs=pair_score(
                int(tables.gold[i, j]), int(tables.predicted[i, j]), int(tables.common[i, j])
            ),
        )
        for i, j in zip(firsts[order].tolist(), seconds[order].tolist(), strict=True)
    )


def by_language(
    gold: ArrayLike, predicted: ArrayLike, languages: Sequence[str]
) -> tuple[LanguageScore, ...]:
    """Return B-cubed of the articles of each language, the language with most articles first.

    Equal counts are in order of the tags.

    Args:
        gold: labels, shape (n,).
        predicted: labels, shape (n,).
        languages: language tag of each article, length n.

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    precisions, recalls = bcubed_by_article(gold, predicted)
    names, language, counts = np.unique(languages, return_inverse=True, return_counts=True)
    _check_length(languages, precisions.size)
    precision = np.bincount(language, weights=precisions) / counts
    recall = np.bincount(language, weights=recalls) / counts
    return tuple(
        LanguageScore(
            language=str(names[i]),
            articles=int(counts[i]),
            bcubed=prf(float(precision[i]), float(recall[i])),
        )
        for i in np.argsort(-counts, kind="stable")
    )


def _check_length(languages: Sequence[str], articles: int) -> None:
    if len(languages) != articles:
        message = f"{articles} articles but {len(languages)} languages"
        raise ValueError(message)


def _pairs_by_language(
    cluster: NDArray[np.int64], language: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count pairs in one cluster by language, int64 (m, m), upper triangle.

    With N the clusters-by-languages table of counts, N'N counts ordered pairs, on the diagonal
    with each article paired with itself.
    """
    from scipy.sparse import coo_array  # noqa: PLC0415 - scipy is loaded only when scoring

    counts = coo_array((np.ones_like(cluster), (cluster, language))).tocsr()
    ordered: NDArray[np.int64] = (counts.T @ counts).toarray()
    within = (np.diagonal(ordered) - np.bincount(language)) // 2
    return np.triu(ordered, k=1) + np.diag(within)
