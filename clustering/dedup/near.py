"""The last word on a near copy: shingles in common, and whether the two tell of other people and scores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clustering.dedup.canonical import canonical_text, settled_text
from clustering.dedup.shingles import shingles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from clustering.dedup.shingles import Hashes

#: Least overlap of shingles of near copies: over all pairs of different documents of ntrex.jsonl the
#: highest is .48 in words (Croatian and Bosnian) and below .1 in characters; a twin with a tenth
#: appended has .91, one with a word changed .95 and more (docs/duplicates.md).
LEAST_OVERLAP = 0.8
#: Names and numbers that may be exchanged: one is a correction, two are another match.
MOST_EXCHANGED = 1

# Thai, Lao, Tibetan, Burmese, Khmer, kana, Han: no spaces between words, so that a unit is a character.
_UNSPACED = re.compile(r"[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_WORD_WINDOW, _CHARACTER_WINDOW = 3, 4
# An end that differs is a signature ("Reporting by …"), up to so many units.
_SIGNATURE_WORDS, _SIGNATURE_CHARACTERS = 12, 40
_CASED_SAMPLE_CHARS = 1_000
_CLOSING = "\"')]"
_SENTENCE_ENDS = frozenset(".!?:")
_PUNCTUATION = "!\"#%&'()*,-./:;?@[\\]_{}|~<>=+·•…،؛؟。、।॥\u0589\u055d፣።"


@dataclass(frozen=True)
class Body:
    """A stored body, with what comparing it to others takes; each part is made once, when asked for.

    Attributes:
        text: as stored.
    """

    text: str

    @cached_property
    def canonical(self) -> str:
        """The form that copies share."""
        return canonical_text(self.text)

    @cached_property
    def bag(self) -> tuple[Hashes, NDArray[np.int64]]:
        """Distinct shingles, ascending, uint64 (n,), and how often each occurs, int64 (n,)."""
        return np.unique(shingles(self.canonical), return_counts=True)

    @cached_property
    def spaced(self) -> bool:
        """Whether spaces stand between words."""
        return 5 * len(_UNSPACED.findall(self.canonical)) < len(self.canonical)

    @cached_property
    def units(self) -> list[str]:
        """Words without the punctuation round them, or characters where words are not separated."""
        parts = self.canonical.split() if self.spaced else self.canonical
        stripped = (part.strip(_PUNCTUATION) for part in parts)
        return [part for part in stripped if part and not part.isspace()]

    @cached_property
    def common(self) -> frozenset[str] | None:
        """Words that are no names, case folded: they occur in lower case, and capitalised at most where a sentence begins.

        None for a script that has no case.
        """
        settled = settled_text(self.text)
        if not _has_case(settled[:_CASED_SAMPLE_CHARS]):
            return None
        lower, named, begins = set(), set(), True
        for word in settled.split():
            bare = word.strip(_PUNCTUATION)
            if bare == bare.lower():
                lower.add(bare.casefold())
            elif not begins:
                named.add(bare.casefold())
            begins = word.rstrip(_CLOSING)[-1:] in _SENTENCE_ENDS
        return frozenset(lower - named)

    def is_specific(self, word: str) -> bool:
        """Tell whether a word may be a name or a number: with digits, no common word, or of a script without case."""
        return self.common is None or word not in self.common or any(map(str.isdigit, word))


def overlap(one: Body, other: Body) -> float:
    """Return the Jaccard similarity of two bags of shingles, 0 to 1."""
    (pieces, counts), (other_pieces, other_counts) = one.bag, other.bag
    _, here, there = np.intersect1d(pieces, other_pieces, assume_unique=True, return_indices=True)
    common = int(np.minimum(counts[here], other_counts[there]).sum())
    total = int(counts.sum() + other_counts.sum()) - common
    return common / total if total else 0.0


def exchanged(one: Body, other: Body) -> int:
    """Count the distinct names and numbers that stand in one body in place of others in the other.

    What only one of the two has, a paragraph more, exchanges nothing. In scripts without case every
    word counts; where words are not separated, every run of characters that the other has not.
    """
    return min(len(_only_in(one, other)), len(_only_in(other, one)))


def near_overlap(one: Body, other: Body) -> float | None:
    """Return the overlap of two near copies; None where they are none."""
    score = overlap(one, other)
    is_copy = score >= LEAST_OVERLAP and exchanged(one, other) <= MOST_EXCHANGED
    return score if is_copy else None


def _has_case(sample: str) -> bool:
    """Tell whether a text is written in small letters and some capitals; Georgian has the small ones alone."""
    lower, upper = sum(map(str.islower, sample)), sum(map(str.isupper, sample))
    return 3 * lower >= len(sample) and 200 * upper >= len(sample)


def _only_in(one: Body, other: Body) -> set[str]:
    window, signature = (
        (_WORD_WINDOW, _SIGNATURE_WORDS)
        if one.spaced
        else (_CHARACTER_WINDOW, _SIGNATURE_CHARACTERS)
    )
    runs = list(_uncovered(one.units, other.units, window))
    if runs and runs[-1].stop == len(one.units) and len(runs[-1]) <= signature:
        runs.pop()
    pieces = [one.units[run.start : run.stop] for run in runs]
    if not one.spaced:
        return {"".join(piece) for piece in pieces}
    return {word for piece in pieces for word in piece if one.is_specific(word)}


def _uncovered(units: Sequence[str], others: Sequence[str], size: int) -> Iterator[range]:
    """Yield the longest runs of units that are in no window of `size` units which both have."""
    known = {tuple(others[start : start + size]) for start in range(len(others) - size + 1)}
    covered = 0
    for start in range(len(units) - size + 1):
        if tuple(units[start : start + size]) in known:
            if start > covered:
                yield range(covered, start)
            covered = max(covered, start + size)
    if covered < len(units):
        yield range(covered, len(units))
