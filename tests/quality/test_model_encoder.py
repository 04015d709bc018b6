"""The encoder with the real weights: precision, order, batches, and that it is worth its code."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from clustering.embedding.encoder import open_encoder
from clustering.embedding.hardware import has_fast_bfloat16

# Own measurements, texts alone and together: float32 above .9999999 (173), bfloat16 .99998 (40).
SAME_IN_ANY_BATCH = {"float32": 0.999_999, "bfloat16": 0.999}
TIMED_TEXTS = 32
ROUNDS = 2


def cosines(one, other):
    return np.einsum("nd,nd->n", one, other)


def test_opened_model_is_that_of_the_card(card, model_folder, model_home):
    encoder = open_encoder(card.name, model_home)
    assert encoder.dimension == card.dimension
    assert encoder.prefix == card.prefix
    assert encoder.model.max_seq_length == card.max_tokens
    dtype = str(next(encoder.model.parameters()).dtype)
    fast = has_fast_bfloat16() or encoder.model.device.type == "cuda"
    assert dtype == ("torch.bfloat16" if fast else "torch.float32")


def test_vectors_are_those_of_sentence_transformers(full_encoder, full_model, sample_texts):
    texts = sample_texts[:6]
    ours = full_encoder.encode(texts)
    theirs = full_model.encode([f"query: {text}" for text in texts], show_progress_bar=False)
    assert ours.dtype == np.float32
    assert cosines(ours, theirs).min() > 0.999_999
    np.testing.assert_allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)


def test_bfloat16_is_near_float32(full_encoder, half_encoder, sample_texts):
    texts = ["", *sample_texts[:30:5]]
    near = cosines(full_encoder.encode(texts), half_encoder.encode(texts))
    assert near.min() >= 0.998
    assert near.min() < 0.999_999_9, "not in bfloat16 at all"


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_text_has_the_same_vector_in_any_batch(request, precision, sample_texts):
    fixture = {"float32": "full_encoder", "bfloat16": "half_encoder"}[precision]
    encoder = request.getfixturevalue(fixture)
    texts = [*sample_texts[:20:5], *sample_texts[1:4]]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts[3:5]])
    backwards = encoder.encode(texts[::-1])[::-1]
    assert cosines(together[3:5], alone).min() > SAME_IN_ANY_BATCH[precision]
    assert cosines(together, backwards).min() > SAME_IN_ANY_BATCH[precision]


def test_the_same_call_gives_the_same_bits(full_encoder, sample_texts):
    texts = sample_texts[:4]
    assert full_encoder.encode(texts).tobytes() == full_encoder.encode(texts).tobytes()


def test_a_long_text_is_cut_at_the_limit(full_encoder):
    long = "flood " * 900
    head = "flood " * 509  # with the prefix, 512 tokens and a few
    assert full_encoder.encode([long])[0] @ full_encoder.encode([head])[0] > 0.999_9


def test_an_article_meets_its_translation(full_encoder):
    english, german, other = full_encoder.encode(
        [
            "Earthquake of magnitude 6.1 shakes the coast, hundreds homeless",
            "Erdbeben der Stärke 6,1 erschüttert die Küste, Hunderte obdachlos",
            "Central bank raises interest rates by half a point",
        ]
    )
    assert english @ german > english @ other + 0.05


def test_faster_than_plain_sentence_transformers(
    card, full_encoder, half_encoder, sample_texts, one_thread
):
    encoder = half_encoder if has_fast_bfloat16() else full_encoder
    texts = sample_texts[:TIMED_TEXTS]
    prefixed = [card.prefix + text for text in texts]
    plain, ours = [], []
    for _ in range(ROUNDS):
        plain.append(
            cpu_seconds(lambda: full_encoder.model.encode(prefixed, show_progress_bar=False))
        )
        ours.append(cpu_seconds(lambda: encoder.encode(texts)))
    assert min(plain) / min(ours) > (3 if has_amx() else 1)


def has_amx():
    return "amx_bf16" in Path("/proc/cpuinfo").read_text("ascii")


@pytest.fixture
def one_thread():
    """Torch on one core: its threads wait for each other busily, so that others' load counts."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def cpu_seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start
