"""Everything that is known of a run's quality, in one record."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from clustering.evaluation.delays import Delay, delay
from clustering.evaluation.events import EventPoint, EventScore, event_score
from clustering.evaluation.languages import (
    LanguagePairScore,
    LanguageScore,
    by_language,
    by_language_pair,
    cross_lingual,
    pair_tables,
    same_language,
)
from clustering.evaluation.placements import PassShare, by_pass
from clustering.evaluation.scores import (
    PRF,
    PairScore,
    adjusted_mutual_information,
    bcubed,
    in_gold_stories,
    pairwise,
)
from clustering.evaluation.sizes import PartitionShape, partition_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which articles were scored and which were not.

    Attributes:
        scored: articles that the scores are of.
        unlabelled: gold rows without a story that were left out.
        unlabelled_placed: how many of these the output has in a story of a scored article.
        unplaced: scored articles in no story of the output, each a cluster of its own; `missing`
            is among them.
        missing: scored articles that the output does not mention.
        missing_examples: ids of the first few of them, in gold order.
        unknown: articles of the output that gold does not mention; they are ignored.
    """

    scored: int
    unlabelled: int
    unlabelled_placed: int
    unplaced: int
    missing: int
    missing_examples: tuple[str, ...]
    unknown: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A predicted partition scored against gold.

    Attributes:
        coverage: which articles were scored.
        bcubed: mean over all scored articles.
        bcubed_stories: mean over the articles whose gold story has two or more; None where gold
            is all singletons. Articles of gold singletons that were joined with them still count
            against their precision.
        pairwise: over all pairs of scored articles.
        same_language: over pairs in one language.
        cross_lingual: over pairs in two different languages, tags compared as they are written.
        ami: adjusted mutual information, at most 1.
        gold: sizes of the gold stories.
        predicted: sizes of the predicted stories, counting scored articles only.
        languages: B-cubed of each language's articles, the largest language first.
        language_pairs: each pair of languages that has gold pairs, the one with most first.
        passes: what each pass placed, the largest share first; empty where the output names none.
        delay: hours until a story is found; None where no gold story has two dated articles.
        events: what lies days apart; None where the output names no event.
        event_curve: the same of stories alone and at each threshold that the output tried, the
            lowest first; empty where it tried none.
    """

    coverage: Coverage
    bcubed: PRF
    bcubed_stories: PRF | None
    pairwise: PairScore
    same_language: PairScore
    cross_lingual: PairScore
    ami: float
    gold: PartitionShape
    predicted: PartitionShape
    languages: tuple[LanguageScore, ...]
    language_pairs: tuple[LanguagePairScore, ...]
    passes: tuple[PassShare, ...]
    delay: Delay | None
    events: EventScore | None
    event_curve: tuple[EventPoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers, ready for `json.dumps`."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


@dataclass(frozen=True, slots=True)
class Scored:
    """The articles that are scored, one entry each, in one order.

    Attributes:
        gold: labels, length n.
        predicted: labels, length n; unplaced articles have one each.
        languages: BCP 47 tags, length n.
        hours: time of each article in hours from any origin, float64 (n,); NaN where not known.
        passes: which pass placed each article, length n, None for those in no story; None where
            the output does not say.
        events: labels of events, of stories where a story is in none, length n; None where the
            output names no event.
        tried_events: such labels by the threshold that they were linked at.
    """

    gold: ArrayLike
    predicted: ArrayLike
    languages: Sequence[str]
    hours: NDArray[np.float64]
    passes: Sequence[str | None] | None = None
    events: ArrayLike | None = None
    tried_events: Mapping[float, ArrayLike] | None = None


def score(scored: Scored, coverage: Coverage) -> Evaluation:
    """Work out every score.

    Args:
        scored: labels, languages, times and passes.
        coverage: what was and was not scored, passed on as it is.

    Raises:
        ValueError: the arrays are empty, not flat, or not of one length.
    """
    gold, predicted = scored.gold, scored.predicted
    several = in_gold_stories(gold)
    tables = pair_tables(gold, predicted, scored.languages)
    return Evaluation(
        coverage=coverage,
        bcubed=bcubed(gold, predicted),
        bcubed_stories=bcubed(gold, predicted, only=several) if several.any() else None,
        pairwise=pairwise(gold, predicted),
        same_language=same_language(tables),
        cross_lingual=cross_lingual(tables),
        ami=adjusted_mutual_information(gold, predicted),
        gold=partition_shape(gold),
        predicted=partition_shape(predicted),
        languages=by_language(gold, predicted, scored.languages),
        language_pairs=by_language_pair(tables),
        passes=() if scored.passes is None else by_pass(gold, predicted, scored.passes),
        delay=delay(gold, predicted, scored.hours),
        events=None if scored.events is None else event_score(gold, scored.events, scored.hours),
        event_curve=_event_curve(scored),
    )


def _event_curve(scored: Scored) -> tuple[EventPoint, ...]:
    if not scored.tried_events:
        return ()
    tried = ((None, scored.predicted), *sorted(scored.tried_events.items()))
    return tuple(
        EventPoint(threshold, event_score(scored.gold, labels, scored.hours))
        for threshold, labels in tried
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever asdict yields: nested dicts, tuples, scalars
    """Turn tuples into lists, all the way down, so that the result equals what JSON reads back."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
