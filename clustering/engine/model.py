"""The model that a database's articles are encoded with, loaded when the first text needs it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from clustering.embedding.align import Alignment, load_alignment
from clustering.embedding.cards import ModelCard, load_card
from clustering.embedding.space import Space, space_name
from clustering.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from clustering.embedding.encoder import Encoder


class Encodes(Protocol):
    """What encodes the articles of a space."""

    card: ModelCard
    alignment: Alignment

    def encode(self, titles: Sequence[str], ledes: Sequence[str]) -> NDArray[np.float32]:
        """Return the raw unit vectors of n articles, of shape (n, dimension), float32."""
        ...


class Model:
    """A model's card, its alignment and, once needed, its weights.

    Args:
        name: name of a card, hub name, or path of a folder; None for the default.
        home: folder that bundled models are expanded under.

    Raises:
        ModelError: there is no such model.
    """

    def __init__(self, name: str | None, home: Path) -> None:
        self.name = name or DEFAULT_MODEL
        self.card: ModelCard = load_card(self.name)
        self.alignment: Alignment = load_alignment(self.card)
        self._home = home

    @cached_property
    def encoder(self) -> Encoder:
        """The loaded model; imports torch."""
        from clustering.embedding.encoder import open_encoder  # noqa: PLC0415 - imports torch

        return open_encoder(self.name, self._home)

    def encode(self, titles: Sequence[str], ledes: Sequence[str]) -> NDArray[np.float32]:
        """Return the raw unit vectors of n articles, of shape (n, dimension), float32."""
        texts = [self.card.text(title, lede) for title, lede in zip(titles, ledes, strict=True)]
        return self.encoder.encode(texts)

    def space(self) -> Space:
        """Return the space that the model and its alignment make; loads the model if its card has no dimension."""
        card = self.card
        return Space(
            name=space_name(card.name, self.alignment.version),
            model=card.name,
            revision=card.revision,
            dimension=card.dimension or self.encoder.dimension,
            prefix=card.prefix,
            recipe=f"title and {card.lede_chars} characters of body",
            alignment=self.alignment.version,
        )
