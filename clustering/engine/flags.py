"""The flags of like titles, scored on a gold file whose rows have titles and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustering.dedup.flags import FlagScores, LabelledTitle, score_flags
from clustering.evaluation.files import read_rows
from clustering.ingest.dates import parse_loosely

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def flags_report(gold: Path) -> FlagScores | None:
    """Score the flags that the cascade's last stage raises on the titles of a gold file.

    Args:
        gold: JSON Lines as `stories evaluate` takes them; rows without `title` or `published_at` are
            left out. Bodies and addresses are of no interest: it is as if nothing had been folded.

    Returns:
        None where no title is flagged or comes twice: there is nothing to score.

    Raises:
        SourceError: the file cannot be read.
    """
    rows = (row.content for row in read_rows(gold))
    titles = [_titled(row) for row in rows if isinstance(row, dict)]
    scores = score_flags([title for title in titles if title is not None])
    return scores if scores.flags or scores.equal else None


def format_flags(scores: FlagScores) -> str:
    """Return the scores as lines below those of `format_evaluation`."""
    return (
        f"Flags of like titles     {scores.flags} pairs, {scores.precision:.3f} of one gold story\n"
        f"Equal titles within 48 h {scores.equal} pairs, {scores.recall:.3f} flagged"
    )


def _titled(row: Mapping[str, object]) -> LabelledTitle | None:
    title, published, story = (row.get(key) for key in ("title", "published_at", "story"))
    time = parse_loosely(published) if isinstance(published, str) else None
    if not isinstance(title, str) or time is None:
        return None
    return LabelledTitle(title, time, None if story is None else str(story))
