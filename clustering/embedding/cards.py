"""Model cards: what has to be known of an encoder before it is loaded.

A card is a TOML file in `models/`. It names where the weights come from, what stands before each
text, and which part of an article is encoded, so that two runs with one card make vectors of one
space.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from clustering.errors import ModelError

DEFAULT_MODEL = "multilingual-e5-small"
BUNDLED = "bundled"
# Average precision of pairs on ECB+: title alone .721, with 300 characters of body .901, with
# 600 .919; more brings little and costs encoding time (own measurement).
LEDE_CHARS = 600
MOST_LEDE_CHARS = 100_000
_RECIPE = re.compile(r":(\d{1,6})$", re.ASCII)


@dataclass(frozen=True, slots=True)
class ModelCard:
    """An encoder and how texts are put to it.

    Attributes:
        name: name of the card; for a model without a card its folder (absolute) or hub name; with
            `:N` at its end where `lede_chars` was named with it.
        source: `bundled`, a hub name (`org/name`), or the path of a sentence-transformers folder.
        revision: commit or tag of the hub, or release of the bundled weights; empty for the newest.
        licence: SPDX name of the weights' licence; empty where not known.
        dimension: length of a vector; None where it is only known once the model is loaded.
        prefix: what stands before each text.
        max_tokens: longer inputs are cut; None for the model's own limit.
        lede_chars: characters of an article's body that are encoded after its title.
        trust_remote_code: whether the hub may run its own Python code to build the model.
        sha256: digest of the bundled weight file, in hexadecimal; empty for other sources.
        notes: anything else worth knowing.
    """

    name: str
    source: str
    revision: str = ""
    licence: str = ""
    dimension: int | None = None
    prefix: str = ""
    max_tokens: int | None = None
    lede_chars: int = LEDE_CHARS
    trust_remote_code: bool = False
    sha256: str = ""
    notes: str = ""

    @property
    def weights(self) -> str:
        """The name without what was said of the text: what weights and offsets are kept by."""
        return _RECIPE.sub("", self.name)

    def text(self, title: str, body: str = "") -> str:
        """Return what is encoded of an article, without the prefix.

        Args:
            title: headline.
            body: plain text, possibly empty.

        Returns:
            The title, and where there is a body a line break and the first `lede_chars`
            characters of it. A letter is not separated from the marks that follow it.
        """
        lede = _cut(body, self.lede_chars)
        return f"{title}\n{lede}" if lede.strip() else title


def card_names() -> list[str]:
    """Return the names of the cards that come with the package, sorted."""
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in files("clustering.models").iterdir()
        if entry.name.endswith(".toml")
        and not entry.name.endswith((".calibration.toml", ".background.toml"))
    )


def load_card(name_or_path: str) -> ModelCard:
    """Find the card of a model, or make one for a model that has none.

    Args:
        name_or_path: a card's name, a sentence-transformers folder, or a hub name (`org/name`).
            A hub name that a card has as its source gives that card. `:N` after any of them
            encodes N characters of an article's body after its title instead of the card's own
            number: another text, so another space.

    Returns:
        The card. One that is made here has no prefix and no dimension.

    Raises:
        ModelError: it is none of the three, or the card is not valid.
    """
    recipe = _RECIPE.search(name_or_path)
    if not recipe:
        return _card(name_or_path)
    card, chars = _card(name_or_path[: recipe.start()]), int(recipe[1])
    if chars > MOST_LEDE_CHARS:
        raise ModelError(
            f"{name_or_path} asks for {chars} characters of body; {MOST_LEDE_CHARS} at most"
        )
    return card if chars == card.lede_chars else with_lede(card, chars)


def with_lede(card: ModelCard, chars: int) -> ModelCard:
    """Return a card that encodes another number of characters of the body."""
    return replace(card, name=f"{card.weights}:{chars}", lede_chars=chars)


def _card(name_or_path: str) -> ModelCard:
    if name_or_path in card_names():
        return _read_card(name_or_path)
    if name_or_path and Path(name_or_path).is_dir():
        return _folder_card(Path(name_or_path))
    if _is_hub_name(name_or_path):
        cards = (_read_card(name) for name in card_names())
        known = (card for card in cards if card.source == name_or_path)
        return next(known, ModelCard(name=name_or_path, source=name_or_path))
    raise ModelError(
        f"no model is called {name_or_path}; there are {', '.join(card_names())}, "
        "and any folder or hub name (org/name) of a sentence-transformers model"
    )


def parse_card(name: str, text: str) -> ModelCard:
    """Make a card of TOML text.

    Args:
        name: the card's name.
        text: keys as the attributes of `ModelCard`; `source` is needed, `name` not allowed.

    Returns:
        The card.

    Raises:
        ModelError: the text is no TOML, or a key is missing, unknown, or of the wrong type.
    """
    try:
        values = tomllib.loads(text)
        card = ModelCard(name=name, **values)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ModelError(f"the card {name}.toml is not valid: {error}") from error
    for field in fields(ModelCard):
        _check_type(name, field.name, getattr(card, field.name))
    return card


def _check_type(card: str, key: str, value: Any) -> None:  # noqa: ANN401 - TOML gives any type
    kinds = {"dimension": int, "max_tokens": int, "lede_chars": int, "trust_remote_code": bool}
    optional = value is None and key in {"dimension", "max_tokens"}
    if not optional and type(value) is not kinds.get(key, str):
        raise ModelError(f"the card {card}.toml has {key} = {value!r}, which is of the wrong type")


def _read_card(name: str) -> ModelCard:
    return parse_card(name, (files("clustering.models") / f"{name}.toml").read_text("utf-8"))


def _folder_card(folder: Path) -> ModelCard:
    if not any((folder / name).is_file() for name in ("modules.json", "config.json")):
        raise ModelError(
            f"{folder} holds no model; a sentence-transformers folder has a modules.json"
        )
    return ModelCard(name=str(folder.resolve()), source=str(folder.resolve()))


def _is_hub_name(name: str) -> bool:
    parts = name.split("/")
    return len(parts) == 2 and all(part and not part.startswith((".", "~")) for part in parts)


def _cut(text: str, characters: int) -> str:
    end = min(characters, len(text))
    while 0 < end < len(text) and unicodedata.category(text[end]).startswith("M"):
        end -= 1
    return text[:end]
