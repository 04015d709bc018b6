"""From text to vectors: model cards, encoders, and the alignment that takes the language out."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustering.embedding.align import Alignment, load_alignment
    from clustering.embedding.cards import ModelCard, card_names, load_card
    from clustering.embedding.encoder import Encoder, SentenceEncoder, open_encoder
    from clustering.embedding.fit import fit_alignment

__all__ = [
    "Alignment",
    "Encoder",
    "ModelCard",
    "SentenceEncoder",
    "card_names",
    "fit_alignment",
    "load_alignment",
    "load_card",
    "open_encoder",
]

# Imported when first asked for: a module of this package that needs no NumPy should not pay for it.
_PLACES = {
    "Alignment": "align",
    "Encoder": "encoder",
    "ModelCard": "cards",
    "SentenceEncoder": "encoder",
    "card_names": "cards",
    "fit_alignment": "fit",
    "load_alignment": "align",
    "load_card": "cards",
    "open_encoder": "encoder",
}


def __getattr__(name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
