"""What the shipped alignment is for: the same event in any language, near under one threshold."""

from __future__ import annotations

import json

import numpy as np
import pytest

from clustering.embedding.align import load_alignment

LANGUAGES = ["ar", "de", "en", "ja", "ru", "sw"]
DOCUMENTS = 8
LEDE_CHARS = 100
# The general threshold that served NTREX, ECB+ and OG2021 alike in the fit.
THRESHOLD = 0.45


@pytest.fixture(scope="module")
def articles(data):
    """Rows of some documents, about different events, in some languages."""
    with (data / "ntrex.jsonl").open(encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["language"] in LANGUAGES]
    stories = sorted({row["story"] for row in rows})[:DOCUMENTS]
    first = {}
    for row in rows:
        if row["story"] in stories:
            first.setdefault((row["story"], row["language"]), row)
    return list(first.values())


@pytest.fixture(scope="module")
def raw(articles, full_encoder):
    return full_encoder.encode([f"{row['title']}\n{row['body'][:LEDE_CHARS]}" for row in articles])


@pytest.fixture(scope="module")
def alignment(card):
    return load_alignment(card)


def scores(vectors, articles):
    """Return cosines of pairs in two languages, and whether they are of one event."""
    story = np.array([row["story"] for row in articles])
    language = np.array([row["language"] for row in articles])
    one, other = np.triu_indices(len(articles), 1)
    across = language[one] != language[other]
    one, other = one[across], other[across]
    return np.einsum("nd,nd->n", vectors[one], vectors[other]), story[one] == story[other]


def average_precision(cosines, same):
    ordered = same[np.argsort(-cosines, kind="stable")]
    found = np.cumsum(ordered)
    return (found / np.arange(1, len(ordered) + 1))[ordered].mean()


def f1_at(threshold, cosines, same):
    chosen = cosines >= threshold
    return 2 * (chosen & same).sum() / (chosen.sum() + same.sum())


def test_raw_cosines_lie_in_a_narrow_band(raw, articles):
    cosines, _ = scores(raw, articles)
    assert cosines.min() > 0.65


def test_alignment_ranks_events_over_languages(raw, articles, alignment):
    tags = [row["language"] for row in articles]
    chars = [min(LEDE_CHARS, len(row["body"])) for row in articles]
    before = average_precision(*scores(raw, articles))
    after = average_precision(*scores(alignment.apply(raw, tags, chars), articles))
    assert after > 0.97
    assert 1 - after < (1 - before) / 2


def test_one_threshold_serves(raw, articles, alignment):
    tags = [row["language"] for row in articles]
    aligned = alignment.apply(raw, tags, [LEDE_CHARS] * len(tags))
    assert f1_at(THRESHOLD, *scores(aligned, articles)) > 0.8


@pytest.mark.parametrize("unknown", ["ar", "de", "ja"])
def test_a_language_that_is_not_known_is_still_found(raw, articles, alignment, unknown):
    tags = ["und" if row["language"] == unknown else row["language"] for row in articles]
    aligned = alignment.apply(raw, tags, [LEDE_CHARS] * len(tags))
    assert average_precision(*scores(aligned, articles)) > 0.96


def test_wrong_languages_are_worse_than_none(raw, articles, alignment):
    swapped = {"de": "ja", "ja": "de", "ar": "ru", "ru": "ar"}
    tags = [row["language"] for row in articles]
    wrong = alignment.apply(raw, [swapped.get(tag, tag) for tag in tags])
    none = alignment.apply(raw, ["und"] * len(tags))
    assert f1_at(THRESHOLD, *scores(wrong, articles)) < f1_at(THRESHOLD, *scores(none, articles))
    assert average_precision(*scores(wrong, articles)) < 0.96
