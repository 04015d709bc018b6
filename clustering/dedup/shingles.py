"""Overlapping pieces of a text as 64-bit hashes: three words, or characters where words say less.

All of it is NumPy over code points; no Python loop touches a word. The hashes are the same on every
machine and in every process, since they are stored.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]


class Script(Enum):
    """How a text is cut: the value is the number of units in a shingle.

    The lengths keep different documents of one language apart: mean Jaccard overlap on ntrex.jsonl
    at most .002 in every language (5 characters: .06 in Tamil, .04 in Burmese). See docs/duplicates.md.
    """

    #: words between spaces: all that is not below
    SPACED = 3
    #: Han, kana and Hangul: characters, each a syllable or more
    DENSE = 6
    #: Thai, Lao, Khmer, Burmese, Tibetan (no spaces between words), and the scripts of Dravidian
    #: languages (long words of many suffixes): code points
    LONG = 12


_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_LONG = re.compile(r"[\u0b80-\u0d7f\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")
# Multipliers of polynomial hashes: odd, from splitmix64 (Steele, Lea and Flood 2014) and PCG.
_IN_WORD = np.uint64(0x5851F42D4C957F2D)
_IN_SHINGLE = np.uint64(0xD6E8FEB86659FD93)
_LONGEST_WORD = 64
# Next to no marks stand between these code points (letters of Asia); emoji and the like between those.
_LETTERS_FROM, _LETTERS_TO = 0x3040, 0xFB00
_PICTURES_FROM, _PICTURES_TO = 0x1F000, 0x20000


def script_of(canonical: str) -> Script:
    """Tell how a canonical text is cut: by what at least a fifth of its characters are.

    A fifth, not a half: Chinese of few characters between many Latin names stays Chinese when an
    English line is added to it.
    """
    if canonical.isascii():
        return Script.SPACED
    fifth = len(canonical) / 5
    if len(_DENSE.findall(canonical)) >= fifth:
        return Script.DENSE
    return Script.LONG if len(_LONG.findall(canonical)) >= fifth else Script.SPACED


def shingles(canonical: str) -> Hashes:
    """Return the shingles of a canonical text in order, repeated ones repeated: uint64 (n,).

    A text shorter than one shingle is one shingle; a text without a letter or digit has none.
    """
    script = script_of(canonical)
    units = _words(canonical) if script is Script.SPACED else _characters(canonical)
    return _windows(units, min(script.value, len(units)))


def mixed(values: Hashes) -> Hashes:
    """Spread values over all 64 bits (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _windows(units: Hashes, size: int) -> Hashes:
    if not size:
        return units
    count = len(units) - size + 1
    total = np.zeros(count, np.uint64)
    for place in range(size):
        total = total * _IN_SHINGLE + units[place : place + count]
    return mixed(total)


def _words(text: str) -> Hashes:
    codes = _codes(text)
    separates = _separates(codes)
    inside = ~separates
    starts = inside.copy()
    starts[1:] &= separates[:-1]
    letters = codes[inside].astype(np.uint64)
    first = np.flatnonzero(starts[inside])
    if not len(first):
        return letters
    places = np.arange(len(letters)) - first[np.cumsum(starts[inside]) - 1]
    weighted = (letters + np.uint64(1)) * _powers()[places % _LONGEST_WORD]
    return mixed(np.add.reduceat(weighted, first))


def _characters(text: str) -> Hashes:
    codes = _codes(text)
    return mixed(codes[~_separates(codes)].astype(np.uint64) + np.uint64(1))


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode(f"utf-32-{sys.byteorder[0]}e"), np.uint32)


def _separates(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Tell for each code point whether it stands between words: a space, mark of punctuation or symbol."""
    table = _separators()
    if not len(codes) or codes.max() < len(table):
        return table[codes]
    beyond = (codes >= _PICTURES_FROM) & (codes < _PICTURES_TO)
    return table[np.minimum(codes, len(table) - 1)] | beyond


@cache
def _separators() -> NDArray[np.bool_]:
    """Return for each code point of the first plane whether it separates words; 15 ms, once."""
    plain = [*range(_LETTERS_FROM), *range(_LETTERS_TO, 0xFFFF)]
    table = np.zeros(0x10000, bool)
    table[plain] = [unicodedata.category(chr(code))[0] in "PSZC" for code in plain]
    return table


@cache
def _powers() -> Hashes:
    return np.cumprod(np.full(_LONGEST_WORD, _IN_WORD), dtype=np.uint64)
