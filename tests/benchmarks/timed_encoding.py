"""Encoding against plain sentence-transformers: the same texts in one process, one way after the other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from sentence_transformers import SentenceTransformer

from clustering.embedding.bundled import expand_bundled
from clustering.embedding.cards import DEFAULT_MODEL, load_card
from clustering.embedding.encoder import open_encoder
from clustering.engine.demo import sample_day

if TYPE_CHECKING:
    from pathlib import Path

    from clustering.embedding.cards import ModelCard


def sample_texts(card: ModelCard, count: int) -> list[str]:
    """Titles with their ledes, in many languages and of all lengths; over and over where too few."""
    texts = [card.text(article.title, article.body[: card.lede_chars]) for article in sample_day()]
    return [texts[number % len(texts)] for number in range(count)]


def measure(home: Path, count: int) -> dict[str, float]:
    """Encode `count` texts both ways.

    Returns:
        `encode_ratio`, how many times as fast as plain float32 with its defaults; `encode_cosine_min`
        to its vectors; `encode_texts_per_s` and `plain_texts_per_s`.
    """
    card = load_card(DEFAULT_MODEL)
    texts = sample_texts(card, count)
    ours = open_encoder(card.name, home)
    plain = SentenceTransformer(str(expand_bundled(card, home)), device="cpu")
    prefixed = [card.prefix + text for text in texts]
    ours.encode(texts[:8])
    plain.encode(prefixed[:8], show_progress_bar=False)
    start = time.perf_counter()
    fast = ours.encode(texts)
    middle = time.perf_counter()
    slow = plain.encode(prefixed, show_progress_bar=False)
    end = time.perf_counter()
    slow /= np.linalg.norm(slow, axis=1, keepdims=True)
    return {
        "encode_ratio": (end - middle) / (middle - start),
        "encode_cosine_min": float(np.einsum("nd,nd->n", fast, slow).min()),
        "encode_texts_per_s": count / (middle - start),
        "plain_texts_per_s": count / (end - middle),
    }
