"""An evaluation as a table for a terminal: plain text, at most 51 lines and a curve of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clustering.evaluation.delays import Delay
    from clustering.evaluation.events import EventPoint, EventScore
    from clustering.evaluation.placements import PassShare
    from clustering.evaluation.result import Coverage, Evaluation
    from clustering.evaluation.scores import PRF
    from clustering.evaluation.sizes import PartitionShape, SizeBand

LANGUAGES_SHOWN = 6
LANGUAGE_PAIRS_SHOWN = 5
MISSING_SHOWN = 3
PASSES_SHOWN = 5
NAME_WIDTH = 24


def format_evaluation(evaluation: Evaluation) -> str:
    """Return the evaluation as aligned plain text, the most telling figures first.

    What does not fit (languages and pairs of languages beyond the largest) is in
    `Evaluation.to_dict`; the text says how many are left out.
    """
    parts = (
        _scores(evaluation),
        _sizes(evaluation),
        _passes(evaluation.passes),
        _delay(evaluation.delay),
        _events(evaluation.events, evaluation.event_curve),
        _languages(evaluation),
        _language_pairs(evaluation),
        _coverage(evaluation.coverage),
    )
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part)


def _scores(evaluation: Evaluation) -> Iterator[str]:
    yield _row("", "precision", "recall", "F1", "pairs in gold")
    yield _score_row("B-cubed", evaluation.bcubed)
    if evaluation.bcubed_stories is not None:
        yield _score_row("B-cubed, stories of 2+", evaluation.bcubed_stories)
    for name, pairs in (
        ("Pairwise", evaluation.pairwise),
        ("  same language", evaluation.same_language),
        ("  across languages", evaluation.cross_lingual),
    ):
        yield _score_row(name, pairs, pairs.gold_pairs)
    yield _row("Adjusted mutual inf.", "", "", f"{evaluation.ami:.3f}")


def _sizes(evaluation: Evaluation) -> Iterator[str]:
    yield _row("", "stories", "mean", "largest", "share", "singletons")
    yield _size_row("Gold", evaluation.gold)
    yield _size_row("Output", evaluation.predicted)
    yield _narrow_row("Articles by story size", map(_band, evaluation.gold.bands))
    for name, shape in (("Gold", evaluation.gold), ("Output", evaluation.predicted)):
        yield _narrow_row(name, (f"{band.articles:,}" for band in shape.bands))


def _passes(passes: Sequence[PassShare]) -> Iterator[str]:
    if not passes:
        return
    yield _row("Placed by pass", "share", "articles", "", "B-cubed F1")
    for placed in passes[:PASSES_SHOWN]:
        share, articles = f"{placed.share:.1%}", f"{placed.articles:,}"
        yield _row(_printable(placed.name), share, articles, "", f"{placed.bcubed.f1:.3f}")


def _delay(delay: Delay | None) -> Iterator[str]:
    if delay is None:
        return
    yield _row("Hours until found", "median", "9 in 10", "found", "at best", "undated")
    yield _row(
        "Gold stories of 2+",
        _hours(delay.median_hours),
        _hours(delay.p90_hours),
        f"{delay.found / delay.stories:.1%}",
        _hours(delay.earliest_median_hours),
        f"{delay.undated:,}",
    )


def _events(events: EventScore | None, curve: Sequence[EventPoint]) -> Iterator[str]:
    if events is None and not curve:
        return
    yield _row("Events", "recall", "far pairs", "precision", "pairs")
    if events is not None:
        yield _event_row("Pairs over 36 h apart", events)
    for point in curve:
        name = "stories alone" if point.threshold is None else f"at {point.threshold:g}"
        yield _event_row(f"  {name}", point.score)


def _event_row(name: str, events: EventScore) -> str:
    recall, precision = (
        "-" if share is None else f"{share:.3f}" for share in (events.far_recall, events.precision)
    )
    return _row(name, recall, f"{events.far_pairs:,}", precision, f"{events.pairs:,}")


def _languages(evaluation: Evaluation) -> Iterator[str]:
    languages = evaluation.languages
    yield _row("B-cubed by language", "precision", "recall", "F1", "articles")
    for score in languages[:LANGUAGES_SHOWN]:
        yield _score_row(score.language, score.bcubed, score.articles)
    if len(languages) > LANGUAGES_SHOWN:
        yield _count_row("languages not shown", len(languages) - LANGUAGES_SHOWN)


def _language_pairs(evaluation: Evaluation) -> Iterator[str]:
    pairs = evaluation.language_pairs[:LANGUAGE_PAIRS_SHOWN]
    if not pairs:
        return
    yield _row("Largest language pairs", "precision", "recall", "F1", "pairs in gold")
    for score in pairs:
        yield _score_row(" ".join(score.languages), score.pairs, score.pairs.gold_pairs)


def _coverage(coverage: Coverage) -> Iterator[str]:
    yield _count_row("Articles scored", coverage.scored)
    yield _count_row("  in no story", coverage.unplaced)
    if coverage.missing:
        yield _count_row("  missing in the output", coverage.missing)
        yield f"    {', '.join(map(_printable, coverage.missing_examples[:MISSING_SHOWN]))}"
    if coverage.unlabelled:
        yield _count_row("Unlabelled, left out", coverage.unlabelled)
        yield _count_row("  in scored stories", coverage.unlabelled_placed)
    if coverage.unknown:
        yield _count_row("Not in gold, ignored", coverage.unknown)


def _count_row(name: str, count: int) -> str:
    return _row(name, f"{count:,}")


def _score_row(name: str, score: PRF, count: int | None = None) -> str:
    figures = (f"{figure:.3f}" for figure in (score.precision, score.recall, score.f1))
    return _row(_printable(name), *figures, "" if count is None else f"{count:,}")


def _size_row(name: str, shape: PartitionShape) -> str:
    return _row(
        name,
        f"{shape.stories:,}",
        f"{shape.mean_size:.1f}",
        f"{shape.largest:,}",
        f"{shape.largest_share:.1%}",
        f"{shape.singletons:,}",
    )


def _band(band: SizeBand) -> str:
    if band.most is None:
        return f"{band.least}+"
    return str(band.least) if band.least == band.most else f"{band.least}-{band.most}"


def _hours(hours: float | None) -> str:
    return "never" if hours is None else f"{hours:.1f}"


def _narrow_row(name: str, cells: Iterable[str]) -> str:
    return f"{name:<{NAME_WIDTH}}{''.join(f'{cell:>7}' for cell in cells)}"


def _row(name: str, *cells: str) -> str:
    """Return one line: the name flush left, then columns flush right."""
    widths = (10, 9, 9, 14, 12)
    columns = (f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=False))
    return f"{name:<{NAME_WIDTH}}{''.join(columns)}".rstrip()


def _printable(text: str) -> str:
    """Return text of others so that it can neither move the cursor nor break the columns."""
    shown = text if text.isprintable() else ascii(text)
    return shown if len(shown) < NAME_WIDTH else shown[: NAME_WIDTH - 4] + "..."
