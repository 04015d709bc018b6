"""The last stage in memory: which titles of a labelled corpus it flags, and how often that is right."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from clustering.dedup.canonical import canonical_text
from clustering.dedup.sketches import sketch_overlap, title_sketch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

#: Least overlap of the sketches of two titles that a person should look at: the share of all their
#: hashes that both have, also where a title has fewer than 32. On og2021.jsonl .965 of the flags at .4
#: are pairs of one story, .87 at .2 (docs/duplicates.md).
LEAST_TITLE_OVERLAP = 0.4
#: The window of a feed that nobody set otherwise, as in the schema.
USUAL_WINDOW = timedelta(hours=48)


class LabelledTitle(NamedTuple):
    """A title with its time and the gold story that it belongs to; None where nobody said."""

    title: str
    time: datetime
    story: str | None


@dataclass(frozen=True, slots=True)
class FlagScores:
    """How good the flags of a labelled corpus are.

    Attributes:
        flags: pairs that are flagged, both of them labelled.
        right: those of one gold story.
        equal: pairs of equal canonical titles within the window.
        equal_flagged: those that are flagged.
    """

    flags: int
    right: int
    equal: int
    equal_flagged: int

    @property
    def precision(self) -> float:
        """Share of flags that are right; 1 where there is none."""
        return self.right / self.flags if self.flags else 1.0

    @property
    def recall(self) -> float:
        """Share of equal titles that are flagged; 1 where there is none."""
        return self.equal_flagged / self.equal if self.equal else 1.0

    def to_dict(self) -> dict[str, float]:
        """Return counts and shares for JSON."""
        return {
            "flags": self.flags,
            "right": self.right,
            "precision": self.precision,
            "equal_title_pairs": self.equal,
            "equal_title_pairs_flagged": self.equal_flagged,
            "recall": self.recall,
        }


def score_flags(
    titles: Sequence[LabelledTitle],
    window: timedelta = USUAL_WINDOW,
    least: float = LEAST_TITLE_OVERLAP,
) -> FlagScores:
    """Flag the like titles of a corpus and compare with its labels.

    Args:
        titles: n titles, in any order.
        window: pairs further apart are neither flagged nor counted.
        least: least overlap of two sketches.
    """
    flagged = set(flagged_pairs(titles, window, least))
    labelled = [(titles[a].story, titles[b].story) for a, b in flagged]
    known = [(one, other) for one, other in labelled if one is not None and other is not None]
    equal = set(_equal_pairs(titles, window))
    return FlagScores(
        flags=len(known),
        right=sum(one == other for one, other in known),
        equal=len(equal),
        equal_flagged=len(equal & flagged),
    )


def flagged_pairs(
    titles: Sequence[LabelledTitle], window: timedelta, least: float
) -> Iterator[tuple[int, int]]:
    """Yield places (a, b), a < b, of titles within the window whose sketches overlap enough.

    The statement `flag_titles` decides the same of stored articles.
    """
    sketches = [title_sketch(row.title) for row in titles]
    holders: dict[int, list[int]] = defaultdict(list)
    for place, sketch in enumerate(sketches):
        found = {other for key in _probe(sketch, least) for other in holders[key]}
        for other in sorted(found):
            near = abs(titles[place].time - titles[other].time) <= window
            if near and sketch_overlap(sketch, sketches[other]) >= least:
                yield other, place
        for key in sketch:
            holders[key].append(place)


def _probe(sketch: tuple[int, ...], least: float) -> tuple[int, ...]:
    """Return hashes of which any sketch that overlaps enough has one (prefix filter, Chaudhuri 2006).

    Such a sketch has at least `least` of these hashes, so it cannot miss one more than the rest.
    """
    return sketch[: len(sketch) - ceil(len(sketch) * least - 0.001) + 1]


def _equal_pairs(titles: Sequence[LabelledTitle], window: timedelta) -> Iterable[tuple[int, int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(titles):
        groups[canonical_text(row.title)].append(place)
    for group in groups.values():
        for a, b in combinations(group, 2):
            if abs(titles[a].time - titles[b].time) <= window:
                yield a, b
