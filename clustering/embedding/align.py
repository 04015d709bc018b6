"""Takes the language out of a vector, so that one threshold serves within and across languages.

Encoders place a text by its language as much as by what it says. The mean of a language differs
from the mean over languages by an offset; subtracting it, and the mean of news in general, leaves
what an article is about:

    aligned = normalise(raw - offset[language] - domain_mean)

Both depend on how much text was encoded: the offset that a language has in headlines and the one
it has in headlines with 600 characters of body have a cosine of .74 on average over 81 languages,
and shorter ledes lie between. So both ends are kept and mixed by the length of the lede. Average
precision of pairs on half of NTREX-128 (16 languages, fitted on the other half; ledes of 0, 100,
250 and 600 characters mixed at random): .953, with one average offset .944, with the offset of
long ledes .930.

A text whose language is unknown or has no offset loses everything that tells languages apart: its
projection on the directions in which their means vary most. Each of 81 languages in turn left out
of the fit, its vectors paired with aligned vectors of 16 other languages (same halves, long
ledes), mean pairwise F1 at cosine .45 / mean average precision:

    no offset                                   .826 / .980
    offset of the nearest language mean         .849 / .982
    rank 8, 16, 32 of the means taken out       .870, .884, .871 / .983, .985, .984
    (offset fitted on that language             .898 / .985)
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import IO, TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from clustering.embedding.tags import nearest_language
from clustering.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from clustering.embedding.cards import ModelCard

UNALIGNED = "none"
# How far an alignment has moved from that of bare titles to that of full ledes, by the length of
# the lede: on NTREX-128 in 16 languages the offsets had moved by .31 and .73 at 100 and 250
# characters, the mean by .53 and .83.
LEDE_SCALE_CHARS = 200
LEDE_FULL_CHARS = 600
SMALLEST_NORM = 1e-12


@dataclass(frozen=True, slots=True)
class Alignment:
    """What is subtracted from the vectors of one model.

    Attributes:
        languages: L BCP 47 tags.
        offsets: language mean minus mean over languages, of shape (2, L, d): first for titles
            alone, then for titles with a full lede.
        domain_means: mean of news in general, of shape (2, d), likewise.
        neutral_basis: orthonormal rows of shape (r, d) that span most of what differs between
            languages; taken out of a vector that has no offset.
        version: names these numbers; `none` where nothing is subtracted.
    """

    languages: tuple[str, ...]
    offsets: NDArray[np.float32]
    domain_means: NDArray[np.float32]
    neutral_basis: NDArray[np.float32]
    version: str

    def apply(
        self,
        raw: NDArray[np.float32],
        languages: Sequence[str | None],
        lede_chars: Sequence[int] | None = None,
    ) -> NDArray[np.float32]:
        """Align vectors with the general mean alone: `centre`, then scale to length 1.

        Takes and raises what `centre` does; returns unit vectors of shape (n, d).
        """
        return normalise(self.centre(raw, languages, lede_chars))

    def centre(
        self,
        raw: NDArray[np.float32],
        languages: Sequence[str | None],
        lede_chars: Sequence[int] | None = None,
    ) -> NDArray[np.float32]:
        """Take language offsets and the general mean out of vectors.

        Args:
            raw: unit vectors of shape (n, d).
            languages: n BCP 47 tags; `und`, an empty tag or None for a language not known.
            lede_chars: n lengths of the lede that was encoded after the title; None where they
                are not known, which takes the middle of both ends.

        Returns:
            Vectors of shape (n, d) and of any length. A row does not depend on the other rows.

        Raises:
            ValueError: the lengths differ.
        """
        if not len(raw) == len(languages) == len(raw if lede_chars is None else lede_chars):
            raise ValueError("vectors, languages and lede lengths differ in number")
        if self.version == UNALIGNED or not len(raw):
            return raw
        rows = self._rows(languages)
        share = _lede_share(len(raw), lede_chars)[:, None]
        centred: NDArray[np.float32] = raw - _between(self.domain_means[:, None], share)
        known = rows >= 0
        centred[known] -= _between(self.offsets[:, rows[known]], share[known])
        centred[~known] = without_span(centred[~known], self.neutral_basis)
        return centred

    def _rows(self, languages: Sequence[str | None]) -> NDArray[np.intp]:
        """Return each tag's place in `languages`, -1 where none serves; shape (n,)."""
        places = {language: place for place, language in enumerate(self.languages)}
        found = {tag: nearest_language(tag or "", places) for tag in set(languages)}
        rows = {tag: -1 if name is None else places[name] for tag, name in found.items()}
        return np.array([rows[tag] for tag in languages], dtype=np.intp)


def normalise(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1; a row of zeros stays.

    Args:
        vectors: shape (n, d).

    Returns:
        A new array of shape (n, d).
    """
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, SMALLEST_NORM)[:, None]
    return scaled


def without_span(vectors: NDArray[np.float32], basis: NDArray[np.float32]) -> NDArray[np.float32]:
    """Take the projection on a subspace out of vectors.

    Args:
        vectors: shape (n, d).
        basis: orthonormal rows of shape (r, d).

    Returns:
        A new array of shape (n, d).
    """
    # einsum and not BLAS, whose sums depend on how many rows there are.
    shares = np.einsum("nd,rd->nr", vectors, basis)
    rest: NDArray[np.float32] = vectors - np.einsum("nr,rd->nd", shares, basis)
    return rest


def identity_alignment() -> Alignment:
    """Return the alignment of a model without offsets: vectors are only scaled to length 1."""
    nothing = np.zeros((0, 0), np.float32)
    return Alignment((), nothing[None], nothing, nothing, UNALIGNED)


def load_alignment(card: ModelCard, home: Path | None = None) -> Alignment:
    """Return the alignment of a model.

    Args:
        card: the model's card.
        home: the engine's folder; an alignment at `alignment_path(card, home)` goes before the
            one that comes with the package.

    Returns:
        The alignment, or `identity_alignment()` where there is none for this model.

    Raises:
        ModelError: the file is not valid, or was fitted on vectors of another length.
    """
    own = alignment_path(card, home) if home else None
    shipped = files("clustering.models") / f"{card.weights}.offsets.npz"
    if own and own.is_file():
        alignment = read_alignment(own)
    elif "/" not in card.weights and shipped.is_file():
        with shipped.open("rb") as stream:
            alignment = _read(stream, card.weights)
    else:
        return identity_alignment()
    if card.dimension not in (None, alignment.offsets.shape[-1]):
        raise ModelError(
            f"the offsets of {card.name} are for vectors of {alignment.offsets.shape[-1]} numbers, "
            f"the card says {card.dimension}; fit them again with clustering.embedding.fit"
        )
    return alignment


def alignment_path(card: ModelCard, home: Path) -> Path:
    """Return where an alignment that the user fitted for a model is kept."""
    stem = card.weights.strip("/").replace("/", "--")
    return home / "models" / f"{stem}.offsets.npz"


def read_alignment(path: Path) -> Alignment:
    """Read an alignment that `write_alignment` wrote.

    Raises:
        ModelError: the file cannot be read or is not valid.
    """
    try:
        with path.open("rb") as stream:
            return _read(stream, str(path))
    except OSError as error:
        raise ModelError(f"cannot read the offsets {path}: {error}") from error


def write_alignment(alignment: Alignment, path: Path) -> None:
    """Write an alignment as an uncompressed `.npz`; the bytes depend on the numbers alone.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("wb") as stream:
        np.savez(
            stream,
            languages=np.array(alignment.languages, dtype=np.str_),
            offsets=alignment.offsets,
            domain_means=alignment.domain_means,
            neutral_basis=alignment.neutral_basis,
            version=np.array(alignment.version),
        )


def _read(stream: IO[bytes], name: str) -> Alignment:
    try:
        with np.load(stream, allow_pickle=False) as arrays:
            return Alignment(
                languages=tuple(arrays["languages"].tolist()),
                offsets=arrays["offsets"],
                domain_means=arrays["domain_means"],
                neutral_basis=arrays["neutral_basis"],
                version=str(arrays["version"]),
            )
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        raise ModelError(f"the offsets of {name} are not valid: {error}") from error


def _lede_share(count: int, lede_chars: Sequence[int] | None) -> NDArray[np.float32]:
    """Return how far each row is from the bare title's end to the full lede's; shape (n,)."""
    if lede_chars is None:
        return np.full(count, 0.5, np.float32)
    lengths = np.clip(np.asarray(lede_chars, np.float32), 0, LEDE_FULL_CHARS) / LEDE_SCALE_CHARS
    full = -np.expm1(-LEDE_FULL_CHARS / LEDE_SCALE_CHARS)
    share: NDArray[np.float32] = (-np.expm1(-lengths) / full).astype(np.float32)
    return share


def _between(ends: NDArray[np.float32], share: NDArray[np.float32]) -> NDArray[np.float32]:
    mixed: NDArray[np.float32] = (1 - share) * ends[0] + share * ends[1]
    return mixed
