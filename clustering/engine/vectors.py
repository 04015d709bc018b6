"""The vectors of a dated corpus, encoded once and kept: for measuring, where nothing is stored in a database."""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from clustering.embedding.domain import first_domain_mean
from clustering.errors import SourceError
from clustering.ingest.language import settle_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from clustering.embedding.cards import ModelCard
    from clustering.engine.model import Model
    from clustering.engine.progress import Progress
    from clustering.records import Article

_CHUNK_TEXTS = 1024  # what the encoder sorts by length at once


class Recalled:
    """An encoder that hands out vectors known beforehand.

    Args:
        texts: n texts without the model's prefix, as `corpus_texts` gives them.
        vectors: their unit vectors, float32 (n, dimension).
    """

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._vectors = vectors
        self._places = {text: place for place, text in enumerate(texts)}

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return int(self._vectors.shape[1])

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vector of each text, in order; float32 (n, dimension).

        Raises:
            KeyError: a text is not among those known.
        """
        return self._vectors[[self._places[text] for text in texts]]


def corpus_texts(card: ModelCard, articles: Iterable[Article]) -> list[str]:
    """Return what the engine encodes of each article, in order."""
    return [card.text(article.title, article.body[: card.lede_chars]) for article in articles]


def corpus_vectors(
    model: Model, articles: Iterable[Article], cache: Path | None, progress: Progress
) -> NDArray[np.float32]:
    """Return the raw vectors of a corpus; encoding it again is spared where they were kept.

    Args:
        model: encodes; its weights are loaded only where something has to be encoded.
        articles: n articles.
        cache: folder, made where it is missing, that vectors are kept in: one `.npz` for each model
            and list of texts, named by the digest of both. None keeps nothing.
        progress: shows how far encoding is.

    Returns:
        Unit vectors, float32 (n, dimension), in the order of the articles.

    Raises:
        SourceError: the folder cannot be written, or a file in it is damaged.
        ModelError: the model cannot be loaded.
    """
    texts = corpus_texts(model.card, articles)
    unique = list(dict.fromkeys(texts))
    path = cache / f"{_digest(model.card, unique)}.npz" if cache else None
    if path and path.is_file():
        vectors = _read(path, len(unique))
    else:
        vectors = _encode(model, unique, progress)
        if path:
            _write(path, vectors)
    places = {text: place for place, text in enumerate(unique)}
    return vectors[[places[text] for text in texts]]


def aligned_vectors(
    model: Model, articles: Sequence[Article], raw: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the vectors of a corpus in the space that the engine searches, once it has seen all of it.

    The engine learns the domain mean as articles come; here it is what the engine ends with, known
    from the beginning.

    Args:
        model: gives language offsets and general mean.
        articles: n articles.
        raw: their raw vectors, float32 (n, dimension).

    Returns:
        Unit vectors, float32 (n, dimension).
    """
    languages = [settle_language(a.language, a.title, a.body)[0] for a in articles]
    ledes = [len(article.body[: model.card.lede_chars]) for article in articles]
    centred = model.alignment.centre(raw, languages, ledes)
    first = first_domain_mean(raw.shape[1], model.alignment.version)
    return first.take(centred).refitted().align(centred)


def _digest(card: ModelCard, texts: Iterable[str]) -> str:
    """Return what names the vectors of texts: anything that changes one of them changes it."""
    state = hashlib.sha256()
    settings = (card.weights, card.source, card.revision, card.sha256, card.prefix, card.max_tokens)
    for part in (*map(str, settings), *texts):
        content = part.encode("utf-8", "surrogatepass")
        state.update(len(content).to_bytes(8, "little") + content)
    return state.hexdigest()[:32]


def _encode(model: Model, texts: Sequence[str], progress: Progress) -> NDArray[np.float32]:
    chunks = [np.empty((0, model.encoder.dimension), np.float32)]
    with progress.stage("encode", len(texts)) as advance:
        for start in range(0, len(texts), _CHUNK_TEXTS):
            chunks.append(model.encoder.encode(texts[start : start + _CHUNK_TEXTS]))
            advance(len(chunks[-1]))
    return np.concatenate(chunks)


def _read(path: Path, count: int) -> NDArray[np.float32]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            vectors: NDArray[np.float32] = arrays["vectors"]
    except (OSError, EOFError, TypeError, ValueError, KeyError, BadZipFile) as error:
        raise SourceError(f"the vectors in {path} are damaged: {error}; delete the file") from error
    if vectors.ndim != 2 or len(vectors) != count or vectors.dtype != np.float32:
        raise SourceError(f"{path} does not hold the vectors of {count} texts; delete the file")
    return vectors


def _write(path: Path, vectors: NDArray[np.float32]) -> None:
    """Write a file at once: a process killed meanwhile leaves none that looks whole."""
    fresh = path.with_name(f".{path.stem}.{secrets.token_hex(4)}.npz")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(fresh, vectors=vectors)
        fresh.replace(path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise SourceError(f"cannot keep vectors in {path.parent}: {error.strerror}") from error
