"""Small numbers that stand for a text: a SimHash, four bands, the sketch of a title."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clustering.dedup.canonical import canonical_text
from clustering.dedup.shingles import mixed, shingles

if TYPE_CHECKING:
    from collections.abc import Collection

    from clustering.dedup.shingles import Hashes

BANDS = 4
#: Most hashes in the sketch of a title, as published.
SKETCH_HASHES = 32
# Features that are unpacked at once: 65,536 take 16 MiB.
_AT_ONCE = 65_536
_EDGES = np.arange(BANDS, dtype=np.uint64) * np.uint64(2**64 // BANDS)


class Near(NamedTuple):
    """What finds near copies of a body; integers are signed, as PostgreSQL's bigint.

    Attributes:
        simhash: 64 bits; near copies differ in few of them.
        bands: the least hash of each quarter of the shingles; near copies share most. None where
            a quarter is empty.
    """

    simhash: int | None
    bands: tuple[int | None, ...]


NO_NEAR_KEYS = Near(None, (None,) * BANDS)


def near_keys(canonical: str) -> Near:
    """Return SimHash and bands of a canonical body; none where it has no letter or digit."""
    pieces, counts = np.unique(shingles(canonical), return_counts=True)
    return Near(_signed(simhash(pieces, counts)), _bands(pieces)) if len(pieces) else NO_NEAR_KEYS


def simhash(pieces: Hashes, counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
    """Return the SimHash (Charikar 2002) of n features with their counts, an unsigned 64-bit integer.

    Bit i is set where features with that bit set weigh more than those without.
    """
    ones = np.zeros(64)
    for start in range(0, len(pieces), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        octets = pieces[part].astype("<u8").view(np.uint8).reshape(-1, 8)
        bits = np.unpackbits(octets, axis=1, bitorder="little")
        ones += counts[part].astype(np.float32) @ bits.astype(np.float32)
    return int(np.packbits(2 * ones > counts.sum(), bitorder="little").view("<u8")[0])


def title_sketch(title: str) -> tuple[int, ...]:
    """Return the 32 smallest shingle hashes of a title, ascending and signed; fewer where it is short."""
    pieces = np.unique(shingles(canonical_text(title)).view(np.int64))
    return tuple(pieces[:SKETCH_HASHES].tolist())


def sketch_overlap(one: Collection[int], other: Collection[int]) -> float:
    """Return how much two sketches share, 0 to 1: common hashes over all that either has.

    For titles of up to 32 shingles this is their Jaccard similarity; for longer ones of like length
    it estimates it.
    """
    common = len(frozenset(one) & frozenset(other))
    return common / (len(one) + len(other) - common) if common else 0.0


def _bands(pieces: Hashes) -> tuple[int | None, ...]:
    """Hash once, divide by the top bits, take the least of each part (Li, Owen and Zhang 2012).

    Two texts share a band with the probability of their Jaccard similarity.
    """
    # Not the hash itself: its bits make the SimHash.
    order = np.sort(mixed(pieces + np.uint64(0x9E3779B97F4A7C15)))
    edges = [*np.searchsorted(order, _EDGES).tolist(), len(order)]
    return tuple(
        _signed(int(order[first])) if first < end else None for first, end in pairwise(edges)
    )


def _signed(value: int) -> int:
    return value - (value >> 63 << 64)
