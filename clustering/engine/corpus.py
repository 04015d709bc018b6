"""Dated corpora: JSON Lines files that are replayed, and the assignments that come of it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clustering.engine.intake import identity
from clustering.engine.reading import NOWHERE
from clustering.engine.vectors import Recalled, corpus_texts, corpus_vectors
from clustering.errors import SourceError
from clustering.ingest.dates import DateBounds
from clustering.ingest.jsonl import article_from_row, read_rows
from clustering.records import Article, Refusal
from clustering.store.database import scratch_database

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from clustering.engine.model import Model
    from clustering.engine.progress import Progress
    from clustering.engine.reading import Assignment
    from clustering.engine.runs import RunReport
    from clustering.settings import Settings

# A corpus may be of any time; only what a database cannot hold is refused.
_ANY_TIME = DateBounds(datetime(1, 1, 2, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class CorpusRow:
    """One row of a corpus.

    Attributes:
        row_id: its `id` as written, or None where it has none.
        article: what it holds, or why it was refused.
    """

    row_id: object
    article: Article | Refusal


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did.

    Attributes:
        report: counts, times and refusals.
        assignments: one mapping with `id`, `story_id`, `event_id` and `pass` for every row of the
            corpus; `pass` is `match`, `discover` or `duplicate`, None where it is in no story;
            `event_ids` the event at each threshold that was tried, where some were.
    """

    report: RunReport
    assignments: Sequence[Mapping[str, object]]


def corpus_rows(path: Path) -> Iterator[CorpusRow]:
    """Yield the rows of a JSON Lines file, those that are no article as refusals."""
    for line, row in read_rows(path):
        if isinstance(row, Refusal):
            yield CorpusRow(None, row)
        else:
            found = article_from_row(row, _ANY_TIME, source=str(path), line=line)
            yield CorpusRow(row.get("id"), _dated(found, str(path), line))


def replay(  # noqa: PLR0913 - one argument for each option of the command
    path: Path,
    settings: Settings,
    every: timedelta,
    progress: Progress,
    vectors: Path | None = None,
    *,
    event_links: Sequence[float] = (),
) -> Replayed:
    """Play a dated corpus through an engine in a scratch database, which is dropped afterwards.

    Args:
        path: JSON Lines; each row needs `published_at` besides what ingest asks for.
        settings: server to make the database on, model, calibration.
        every: length of a step.
        progress: shows how far it is.
        vectors: folder that vectors are kept in from one replay to the next; None encodes anew.
        event_links: thresholds at which events are linked too, each as if it were the calibration's.

    Raises:
        SourceError: the file has no article that can be played, or vectors cannot be kept.
        DatabaseError: the scratch database cannot be made.
    """
    from clustering.engine.engine import Engine  # noqa: PLC0415 - engine imports the replay of the demo

    rows = list(corpus_rows(path))
    if not any(isinstance(row.article, Article) for row in rows):
        refused = next((f": {row.article}" for row in rows), "")
        raise SourceError(f"{path} has no article to replay{refused}")
    with ExitStack() as opened:
        dsn = opened.enter_context(scratch_database(settings.database, settings.home))
        engine = opened.enter_context(
            Engine.open(settings=replace(settings, database=dsn), progress=progress)
        )
        encoder = _recalled(engine.model, rows, vectors, progress) if vectors else None
        articles = (row.article for row in rows)
        report = engine.play(articles, every=every, encoder=encoder, event_links=event_links)
        tried = {f"{link:g}": engine.events_at(link) for link in sorted(set(event_links))}
        return Replayed(report, _assignments(rows, engine.assignments(), tried))


def write_assignments(replayed: Replayed, path: Path) -> None:
    """Write assignments as JSON Lines.

    Raises:
        SourceError: the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            for row in replayed.assignments:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    except OSError as error:
        raise SourceError(f"cannot write {path}: {error.strerror}; name another file") from error


def _dated(found: Article | Refusal, source: str, line: int) -> Article | Refusal:
    if isinstance(found, Article) and found.published_at is None:
        return Refusal(source, line, "no published_at", "a replay needs to know when it arrived")
    return found


def _recalled(
    model: Model, rows: Sequence[CorpusRow], vectors: Path, progress: Progress
) -> Recalled:
    articles = [row.article for row in rows if isinstance(row.article, Article)]
    return Recalled(
        corpus_texts(model.card, articles), corpus_vectors(model, articles, vectors, progress)
    )


def _assignments(
    rows: Sequence[CorpusRow],
    places: Mapping[tuple[str, str], Assignment],
    tried: Mapping[str, Mapping[int, int]],
) -> list[Mapping[str, object]]:
    return [_assignment(row, places, tried) for row in rows]


def _assignment(
    row: CorpusRow,
    places: Mapping[tuple[str, str], Assignment],
    tried: Mapping[str, Mapping[int, int]],
) -> Mapping[str, object]:
    place = NOWHERE
    if isinstance(row.article, Article):
        place = places.get(identity(row.article), NOWHERE)
    found = {
        "id": row.row_id,
        "story_id": place.story_id,
        "event_id": place.event_id,
        "pass": place.pass_name,
    }
    if not tried:
        return found
    story = place.story_id
    at = {link: None if story is None else events.get(story) for link, events in tried.items()}
    return {**found, "event_ids": at}
