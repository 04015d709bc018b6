"""Turns texts into unit vectors with any sentence-transformers model, on the cores that there are.

A text is padded to the longest of its batch, and batches that outgrow the processor's cache slow
it down. So texts are tokenised once, sorted by their number of tokens, put into batches of like
length under a budget of tokens, and each batch is cut to its own longest text before the model's
own modules (transformer, pooling, normalisation and whatever else it has) run on it. Against
`SentenceTransformer.encode` with its defaults, in float32 with AVX-512, one thread, 32 to 320 texts,
CPU time: titles with up to 600 characters 1.7 to 2.3 times as many a second, bare titles 1.1 times,
both mixed 1.9 to 2 times, at a cosine above .999999. Budgets of 512 to 2048 tokens are alike, 4096
is slower by a fifth. A prototype of this in bfloat16 with AMX, 492 texts of 132 tokens in batches
of 16 texts of like length, was 5.3 times as fast; this code has not been timed with AMX.

A vector depends on its text alone but for the order of additions: in float32 the same text in
another batch gives a vector at a cosine above .999999, in bfloat16 above .999 (.99998 is the least
of 40 texts encoded alone and together; to float32 it is .99997). The same texts in
the same order on the same machine give the same bits.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from clustering.embedding.align import normalise
from clustering.embedding.bundled import expand_bundled
from clustering.embedding.cards import BUNDLED, ModelCard, load_card
from clustering.embedding.hardware import has_fast_bfloat16, usable_cores
from clustering.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import torch
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

# Texts tokenised and sorted together: enough that lengths within a batch are alike, and few enough
# that their tokens (16 MiB at 512 a text) do not count.
CHUNK_TEXTS = 1024
# Tokens in a batch, padding included: see above for float32. In bfloat16 as many as the prototype
# had, 16 texts of 132 tokens. A graphics card wants more; that number is not measured.
FLOAT32_BATCH_TOKENS = 1024
BFLOAT16_BATCH_TOKENS = 2048
CUDA_BATCH_TOKENS = 32768


class Encoder(Protocol):
    """Anything that turns texts into unit vectors."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, in order; shape (n, dimension)."""
        ...


class SentenceEncoder:
    """A sentence-transformers model behind the `Encoder` protocol.

    Args:
        model: a loaded model. Its transformer may be in a lower precision; vectors are float32.
        prefix: what stands before each text; None takes the model's default prompt.
        batch_tokens: most tokens in a batch, padding included; a longer text is a batch of its own.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        prefix: str | None = None,
        batch_tokens: int = FLOAT32_BATCH_TOKENS,
    ) -> None:
        self.model = model.eval()
        self.prefix = _default_prompt(model) if prefix is None else prefix
        self.batch_tokens = batch_tokens
        self._dimension: int | None = None

    @property
    def dimension(self) -> int:
        """Length of a vector, which encoding a text shows: not every model says."""
        if self._dimension is None:
            self._dimension = self._forward(self._tokenise(["a"])).shape[1]
        return self._dimension

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Encode texts.

        Args:
            texts: n texts without the prefix; empty ones are allowed.

        Returns:
            Unit vectors of shape (n, dimension), in the order of the texts; zeros for a text that
            has no token, which only happens where the model's tokenizer adds none of its own.
        """
        chunks = list(self.encode_chunks(texts))
        return np.concatenate(chunks) if chunks else np.empty((0, self.dimension), np.float32)

    def encode_chunks(self, texts: Iterable[str]) -> Iterator[NDArray[np.float32]]:
        """Encode a stream of any length in constant memory.

        Args:
            texts: texts without the prefix.

        Yields:
            Unit vectors of the next `CHUNK_TEXTS` texts or fewer, of shape (n, dimension).
        """
        remaining = iter(texts)
        while chunk := list(islice(remaining, CHUNK_TEXTS)):
            yield self._encode_chunk(chunk)

    def _encode_chunk(self, texts: list[str]) -> NDArray[np.float32]:
        features = self._tokenise([self.prefix + text for text in texts])
        mask = features.get("attention_mask")
        if mask is None:  # a model without padding, such as a table of word vectors
            return self._forward(features)
        lengths = mask.sum(dim=1).numpy()
        filled = np.flatnonzero(lengths)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for batch in length_batches(lengths[filled], self.batch_tokens):
            places = filled[batch]
            vectors[places] = self._forward(cut_features(features, places))
        return vectors

    def _tokenise(self, texts: list[str]) -> dict[str, Any]:
        # `preprocess` came with sentence-transformers 5.4, where `tokenize` began to warn.
        read = getattr(self.model, "preprocess", None) or self.model.tokenize
        features: dict[str, Any] = read(texts)
        return features

    def _forward(self, features: dict[str, Any]) -> NDArray[np.float32]:
        import torch  # noqa: PLC0415 - seconds to import, and not everything encodes

        device = self.model.device
        placed = {
            name: value.to(device) if hasattr(value, "to") else value
            for name, value in features.items()
        }
        with torch.inference_mode():
            vectors: torch.Tensor = self.model(placed)["sentence_embedding"]
        return normalise(vectors.float().cpu().numpy())


def length_batches(lengths: NDArray[np.int64], batch_tokens: int) -> list[NDArray[np.intp]]:
    """Group texts of like length.

    Args:
        lengths: tokens of each text, of shape (n,).
        batch_tokens: most tokens in a batch when all are padded to its longest text; a single
            text may exceed it.

    Returns:
        Places of the texts of each batch, longest texts first: the batch that needs most memory
        fails at once if it fails. Each text is in one batch.
    """
    order = np.argsort(-lengths, kind="stable")
    batches = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        end = start + max(1, batch_tokens // longest)
        batches.append(order[start:end])
        start = end
    return batches


def cut_features(features: dict[str, Any], places: NDArray[np.intp]) -> dict[str, Any]:
    """Take some texts out of a padded batch, without the padding that none of them needs.

    Args:
        features: what the model's tokenizer returned; tensors of the mask's shape (n, length)
            hold something for each token, padded on either side.
        places: texts to take, of shape (m,).

    Returns:
        The same features for m texts; what is not for each token stays as it is.
    """
    import torch  # noqa: PLC0415 - as above

    mask = features["attention_mask"]
    rows = torch.as_tensor(places)
    columns = mask[rows].any(dim=0)
    return {
        name: value[rows][:, columns] if getattr(value, "shape", None) == mask.shape else value
        for name, value in features.items()
    }


def open_encoder(model: str, home: Path) -> SentenceEncoder:
    """Load a model for this machine: on CUDA where there is a card, else on the cores lent to us.

    The transformer runs in bfloat16 where that is done in hardware, pooling always in float32.

    Args:
        model: name of a card, hub name, or path of a sentence-transformers folder.
        home: the engine's folder, where the bundled model is expanded.

    Returns:
        The encoder.

    Raises:
        ModelError: there is no such model, or it cannot be loaded.
    """
    import torch  # noqa: PLC0415 - as above

    card = load_card(model)
    path = str(expand_bundled(card, home)) if card.source == BUNDLED else card.source
    cuda = torch.cuda.is_available()
    torch.set_num_threads(usable_cores())
    loaded = load_sentence_transformer(card, path, "cuda" if cuda else "cpu")
    batch_tokens = CUDA_BATCH_TOKENS if cuda else FLOAT32_BATCH_TOKENS
    if cuda or has_fast_bfloat16():
        use_bfloat16(loaded)
        batch_tokens = max(batch_tokens, BFLOAT16_BATCH_TOKENS)
    return SentenceEncoder(loaded, card.prefix or None, batch_tokens)


def load_sentence_transformer(card: ModelCard, path: str, device: str) -> SentenceTransformer:
    """Load a model in float32, without progress bars, and for a folder without the network.

    Args:
        card: the model's card.
        path: folder or hub name.
        device: torch's name of the device.

    Returns:
        The model, with its inputs cut at the card's `max_tokens`.

    Raises:
        ModelError: it cannot be found or loaded.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the hub is imported
    import torch  # noqa: PLC0415 - as above
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - as above

    try:
        with _quiet():
            model = SentenceTransformer(
                path,
                device=device,
                revision=card.revision if path == card.source and card.revision else None,
                trust_remote_code=card.trust_remote_code,
                local_files_only=Path(path).is_dir(),
                model_kwargs={"torch_dtype": torch.float32},
            )
    except (
        Exception
    ) as error:  # readers of five file formats, and a model's own code, raise anything
        raise ModelError(_loading_failed(card, path, error)) from error
    limit = model.max_seq_length
    if card.max_tokens is not None:
        model.max_seq_length = min(card.max_tokens, limit) if limit else card.max_tokens
    return model


def _loading_failed(card: ModelCard, path: str, error: Exception) -> str:
    reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
    remedy = (
        "save it there again"
        if Path(path).is_dir()
        else "check the name and the network, or name a folder that the model was downloaded to"
    )
    return f"cannot load the model {card.name} from {path}: {reason}; {remedy}"


def use_bfloat16(model: SentenceTransformer) -> None:
    """Put a model's first module, the transformer, in bfloat16; what follows it stays float32.

    Args:
        model: changed in place.
    """
    import torch  # noqa: PLC0415 - as above

    def to_float32(_module: object, _inputs: object, features: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value.float() if getattr(value, "dtype", None) == torch.bfloat16 else value
            for name, value in features.items()
        }

    first = model[0]
    first.to(torch.bfloat16)
    first.register_forward_hook(to_float32)


def _default_prompt(model: SentenceTransformer) -> str:
    name = model.default_prompt_name
    return str(model.prompts.get(name, "")) if name else ""


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the libraries' progress bars and advice off the screen while a model is loaded."""
    from transformers.utils import logging as bars  # noqa: PLC0415 - as above

    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "transformers")]
    levels = [logger.level for logger in loggers]
    shown = bars.is_progress_bar_enabled()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    bars.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it so
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if shown:
            bars.enable_progress_bar()  # type: ignore[no-untyped-call]  # likewise
