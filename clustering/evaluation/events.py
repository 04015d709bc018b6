"""Whether what belongs together over days is in one event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clustering.evaluation.scores import codes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Longer than a story's window as published: such pairs have to meet in an event.
FAR_HOURS = 36.0


@dataclass(frozen=True, slots=True)
class EventScore:
    """Events scored against gold stories that last for days.

    Attributes:
        far_pairs: gold pairs more than 36 hours apart.
        far_recall: share of them in one event, or in one story; None where there are none.
        pairs: pairs of scored articles in one event.
        precision: share of these that are gold pairs; None where there are none.
    """

    far_pairs: int
    far_recall: float | None
    pairs: int
    precision: float | None


@dataclass(frozen=True, slots=True)
class EventPoint:
    """A point of the curve of events over their threshold.

    Attributes:
        threshold: what two clusters of stories had to score; None for stories alone, without events.
        score: how good the events of that threshold are.
    """

    threshold: float | None
    score: EventScore


def event_score(gold: ArrayLike, events: ArrayLike, hours: NDArray[np.float64]) -> EventScore:
    """Return how well events bring together what is far apart in time.

    Args:
        gold: labels, shape (n,).
        events: labels of events, of stories where a story is in none, shape (n,).
        hours: time of each article in hours from any origin, shape (n,); NaN where not known: in
            no far pair.

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    told, found = codes(gold), codes(events)
    both = codes(told * (int(found.max()) + 1) + found)
    far, far_found = _far_pairs(told, hours), _far_pairs(both, hours)
    pairs, right = _pairs(found), _pairs(both)
    return EventScore(
        far_pairs=far,
        far_recall=far_found / far if far else None,
        pairs=pairs,
        precision=right / pairs if pairs else None,
    )


def _pairs(labels: NDArray[np.int64]) -> int:
    sizes = np.bincount(labels)
    return int((sizes * (sizes - 1) // 2).sum())


def _far_pairs(labels: NDArray[np.int64], hours: NDArray[np.float64]) -> int:
    """Count the pairs of equal labels that are more than `FAR_HOURS` apart."""
    dated = ~np.isnan(hours)
    order = np.lexsort((hours[dated], labels[dated]))
    groups, times = labels[dated][order], hours[dated][order]
    if not len(groups):
        return 0
    starts = np.flatnonzero(np.r_[True, np.diff(groups) > 0])
    return sum(
        int(np.searchsorted(part, part - FAR_HOURS, side="left").sum())
        for part in np.split(times, starts[1:])
    )
