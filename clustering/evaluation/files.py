"""Gold rows and the engine's assignments: reading, checking and joining them.

A gold row is `{"id", "language", "story", "published_at"}`, an assignment `{"id", "story_id", "pass"}`;
only ids and stories are required, and other keys are of no interest here. Ids and stories may be
strings or integers, and 7 equals "7".
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clustering.errors import SourceError
from clustering.evaluation.result import Coverage, Evaluation, Scored, score
from clustering.records import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import BufferedReader

UNDETERMINED = "und"  # BCP 47's tag for a language that is not stated
GZIP_MAGIC = b"\x1f\x8b"
MISSING_EXAMPLES = 5


class Row(NamedTuple):
    """One row, not yet checked, with where it stands."""

    source: str
    line: int
    content: object


@dataclass(frozen=True, slots=True)
class GoldArticle:
    """One gold row.

    Attributes:
        id: the article's id.
        language: BCP 47 tag, `und` where it is not stated.
        story: None for an article that nobody labelled.
        hours: `published_at` in hours since 1970, UTC; NaN where it is missing or no ISO 8601 time.
    """

    id: str
    language: str
    story: str | None
    hours: float = math.nan


class Assigned(NamedTuple):
    """Where the output has an article: its story, the pass that placed it there and its event, if it says.

    `tried` is its event at each threshold that the output tried.
    """

    story: str | None
    pass_name: str | None = None
    event: str | None = None
    tried: Mapping[float, str | None] = MappingProxyType({})


_NOWHERE = Assigned(None)


def evaluate(
    gold_path: str | Path, output_path: str | Path, *, score_unlabelled: bool = False
) -> Evaluation:
    """Score a file of assignments against a file of gold rows, both JSON Lines, plain or gzip.

    Args:
        gold_path: rows with `id`, `story` (null where unlabelled) and, where known, `language` and
            `published_at`.
        output_path: rows with `id`, `story_id` and, where known, `pass` and `event_id`, as
            `stories replay --assignments` writes them; `event_ids` with `--event-link`.
        score_unlabelled: count each unlabelled article as a gold story of its own, instead of
            leaving it out.

    Raises:
        SourceError: a file cannot be read, a row is malformed, an id comes twice, or gold has no
            article to score. The message names file and line.
    """
    gold, assigned = read_rows(gold_path), read_rows(output_path)
    return _evaluate(gold, assigned, str(gold_path), score_unlabelled=score_unlabelled)


def evaluate_rows(
    gold_rows: Iterable[Mapping[str, object]],
    assignments: Iterable[Mapping[str, object]],
    *,
    score_unlabelled: bool = False,
) -> Evaluation:
    """Score rows that are already in memory; see `evaluate` for what they hold.

    Args:
        gold_rows: mappings with `id`, `story` and, where known, `language` and `published_at`.
        assignments: mappings with `id`, `story_id` and, where known, `pass`.
        score_unlabelled: count each unlabelled article as a gold story of its own.

    Raises:
        SourceError: a row is malformed, an id comes twice, or gold has no article to score. The
            message says which of the two and which row, from 1.
    """
    gold, assigned = _numbered("gold rows", gold_rows), _numbered("assignments", assignments)
    return _evaluate(gold, assigned, "gold rows", score_unlabelled=score_unlabelled)


def read_rows(path: str | Path) -> Iterator[Row]:
    """Yield the rows of a JSON Lines file, plain or gzip (told by its first bytes), in order.

    Blank lines are skipped and counted. A byte order mark is allowed.

    Raises:
        SourceError: the file cannot be read or unpacked, or a line is not UTF-8 or not JSON.
    """
    source, line = str(path), 0
    try:
        with Path(path).open("rb") as raw, _unpacked(raw) as stream:
            for line, content in enumerate(stream, start=1):
                if content.strip():
                    yield Row(source, line, _parsed(content, source, line))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = f"damaged gzip after line {line}: {error}"
        raise _refused(source, None, reason, "copy the file again") from error
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise _refused(source, None, reason, "check the path") from error


def gold_articles(rows: Iterable[Row]) -> list[GoldArticle]:
    """Check gold rows and return their articles in order.

    An id may come again with the same story: a corpus may hold the versions of a live blog. It
    counts once.

    Raises:
        SourceError: a row is malformed, or an id comes with two stories.
    """
    first_lines: dict[str, int] = {}
    articles: dict[str, GoldArticle] = {}
    for row in rows:
        content = _mapping(row)
        article = GoldArticle(
            id=_identifier(row, content),
            language=_language(row, content),
            story=_label(row, content, "story"),
            hours=_hours(content.get("published_at")),
        )
        known = articles.setdefault(article.id, article)
        first = first_lines.setdefault(article.id, row.line)
        if known.story != article.story:
            reason = f"id {article.id!r} stands in line {first} with another story"
            raise _refused(row.source, row.line, reason, "label each article once")
    return list(articles.values())


def assigned_stories(rows: Iterable[Row]) -> dict[str, Assigned]:
    """Check assignments and return where each article id is.

    An id may come again with the same story: a corpus may hold an article that was fetched twice.

    Raises:
        SourceError: a row is malformed, or an id comes with two stories.
    """
    places: dict[str, Assigned] = {}
    for row in rows:
        content = _mapping(row)
        identifier, story = _identifier(row, content), _label(row, content, "story_id")
        pass_name = _label(row, content, "pass") if "pass" in content else None
        event = _label(row, content, "event_id") if "event_id" in content else None
        place = Assigned(story, pass_name, event, _tried(row, content))
        before = places.setdefault(identifier, place).story
        if before != story:
            reason = f"id {identifier!r} is in story {before!r} and in story {story!r}"
            raise _refused(row.source, row.line, reason, "assign each article once")
    return places


def _evaluate(
    gold_rows: Iterable[Row],
    assignments: Iterable[Row],
    gold_source: str,
    *,
    score_unlabelled: bool,
) -> Evaluation:
    gold, assigned = gold_articles(gold_rows), assigned_stories(assignments)
    scored = [article for article in gold if score_unlabelled or article.story is not None]
    if not scored:
        reason = "no article with a story to score"
        raise _refused(gold_source, None, reason, "give labelled rows")
    places = [assigned.get(article.id, _NOWHERE) for article in scored]
    joined = Scored(
        gold=_numbers(article.story for article in scored),
        predicted=_numbers(place.story for place in places),
        languages=[article.language for article in scored],
        hours=np.array([article.hours for article in scored]),
        passes=_passes(places),
        events=_events(places),
        tried_events=_tried_events(places),
    )
    return score(joined, _coverage(gold, scored, assigned))


def _passes(places: list[Assigned]) -> list[str | None] | None:
    """Return the pass of each article, or None where the output names no pass at all."""
    if all(place.pass_name is None for place in places):
        return None
    return [place.pass_name if place.story is not None else None for place in places]


def _events(places: list[Assigned]) -> list[int] | None:
    """Return a number for the event of each article, or None where the output names no event at all."""
    if all(place.event is None for place in places):
        return None
    return _event_numbers((place.story, place.event) for place in places)


def _tried_events(places: list[Assigned]) -> dict[float, list[int]]:
    """Return the same for each threshold that the output tried; an article it does not mention is in none."""
    thresholds = sorted({threshold for place in places for threshold in place.tried})
    return {
        threshold: _event_numbers((place.story, place.tried.get(threshold)) for place in places)
        for threshold in thresholds
    }


def _event_numbers(places: Iterable[tuple[str | None, str | None]]) -> list[int]:
    """Number events, given with the story; a story in none stands for itself."""
    return _numbers(
        f"story {story}" if event is None and story is not None else event
        for story, event in places
    )


def _coverage(
    gold: list[GoldArticle], scored: list[GoldArticle], assigned: dict[str, Assigned]
) -> Coverage:
    known, scored_ids = {article.id for article in gold}, {article.id for article in scored}
    left_out = known - scored_ids
    placed = [assigned.get(article.id, _NOWHERE).story for article in scored]
    stories = set(placed) - {None}
    missing = [article.id for article in scored if article.id not in assigned]
    return Coverage(
        scored=len(scored),
        unlabelled=len(left_out),
        unlabelled_placed=sum(assigned.get(name, _NOWHERE).story in stories for name in left_out),
        unplaced=sum(story is None for story in placed),
        missing=len(missing),
        missing_examples=tuple(missing[:MISSING_EXAMPLES]),
        unknown=len(assigned.keys() - known),
    )


def _numbers(labels: Iterable[str | None]) -> list[int]:
    """Number labels from 0, equal ones alike; each None gets a number of its own."""
    numbers: dict[object, int] = {}
    return [
        numbers.setdefault(object() if label is None else label, len(numbers)) for label in labels
    ]


def _numbered(source: str, rows: Iterable[object]) -> Iterator[Row]:
    return (Row(source, number, content) for number, content in enumerate(rows, start=1))


def _unpacked(raw: BufferedReader) -> BufferedReader | gzip.GzipFile:
    """Return `raw`, unpacked if it starts as gzip does; a pipe can be peeked at, not rewound."""
    return gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == GZIP_MAGIC else raw


def _parsed(content: bytes, source: str, line: int) -> object:
    try:
        return json.loads(content.decode("utf-8-sig" if line == 1 else "utf-8"))
    except UnicodeDecodeError as error:
        raise _refused(source, line, f"not UTF-8: {error.reason}", "convert the file") from error
    except (ValueError, RecursionError) as error:
        raise _refused(source, line, f"not JSON: {error}", "write one object a line") from error


def _mapping(row: Row) -> Mapping[str, object]:
    if isinstance(row.content, Mapping):
        return row.content
    reason = f"not an object but {type(row.content).__name__}"
    raise _refused(row.source, row.line, reason, "write one object a line")


def _identifier(row: Row, content: Mapping[str, object]) -> str:
    identifier = _label(row, content, "id")
    if not identifier:
        raise _refused(row.source, row.line, "id is null or empty", "give each article its id")
    return identifier


def _label(row: Row, content: Mapping[str, object], key: str) -> str | None:
    """Return a string or integer as string, or None for null."""
    if key not in content:
        raise _refused(row.source, row.line, f"no {key}", "give it, or null where there is none")
    value = content[key]
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    reason = f"{key} is {value!r}"
    raise _refused(row.source, row.line, reason, "give a string, an integer or null")


def _tried(row: Row, content: Mapping[str, object]) -> dict[float, str | None]:
    """Return the event at each threshold that was tried."""
    tried = content.get("event_ids") or {}
    try:
        by_threshold = {float(key): key for key in tried} if isinstance(tried, Mapping) else None
    except ValueError:
        by_threshold = None
    if by_threshold is None or not isinstance(tried, Mapping):
        reason = f"event_ids is {tried!r}"
        raise _refused(row.source, row.line, reason, 'give {"0.55": id or null} for each threshold')
    return {threshold: _label(row, tried, key) for threshold, key in by_threshold.items()}


def _language(row: Row, content: Mapping[str, object]) -> str:
    value = content.get("language")
    if value is not None and not isinstance(value, str):
        reason = f"language is {value!r}"
        raise _refused(row.source, row.line, reason, "give a BCP 47 tag or null")
    return value or UNDETERMINED


def _hours(value: object) -> float:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None:
        return math.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / 3600


def _refused(source: str, line: int | None, reason: str, remedy: str) -> SourceError:
    return SourceError(str(Refusal(source, line, reason, remedy)))
