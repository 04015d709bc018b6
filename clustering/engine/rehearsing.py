"""Labelled corpora made ready to be rehearsed: cascade, vectors, domain means, as the engine would have them."""

from __future__ import annotations

import warnings
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering.embedding.domain import DomainMean
from clustering.engine.corpus import corpus_rows
from clustering.engine.intake import identity, take_in
from clustering.engine.model import Model
from clustering.engine.replay import in_order, moment
from clustering.engine.runs import Run
from clustering.engine.vectors import corpus_vectors
from clustering.errors import SourceError
from clustering.evaluation.files import gold_articles, read_rows
from clustering.evaluation.scores import codes
from clustering.records import Article
from clustering.store.database import Database, scratch_database
from clustering.stories.passes import SLICE_ORIGIN
from clustering.stories.rehearsal import Step, Stream, rehearse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import timedelta
    from pathlib import Path

    from numpy.typing import NDArray

    from clustering.engine.progress import Progress
    from clustering.settings import Settings
    from clustering.stories.calibration import Calibration

    Ids = NDArray[np.int64]

# How far back vectors are kept from a slice: more than any calibration that a search tries looks.
KEPT_HOURS = 24.0 * 16


@dataclass(frozen=True)
class Rehearsed:
    """A labelled corpus: n articles that are no duplicates, in order of time, and m labelled rows.

    Attributes:
        name: of the corpus.
        hours: event times in hours since 2000, float64 (n,), ascending.
        every_hours: length of a slice.
        languages: tags without script or region, str (n,).
        raw: the model's unit vectors, float32 (n, dimension).
        centred: these less language offset and general mean, float32 (n, dimension).
        ids: of the labelled rows, str (m,).
        places: for each labelled row the place of its canonical article, int64 (m,).
        gold: for each labelled row the number of its story, int64 (m,).
    """

    name: str
    hours: NDArray[np.float64]
    every_hours: float
    languages: NDArray[np.str_]
    raw: NDArray[np.float32]
    centred: NDArray[np.float32]
    ids: NDArray[np.str_]
    places: Ids
    gold: Ids

    @cached_property
    def stream(self) -> Stream:
        """The corpus as the passes meet it."""
        return Stream(self.hours, codes(self.languages), list(_steps(self)))

    def partition(self, calibration: Calibration) -> Ids:
        """Return the story of each labelled row, int64 (m,); rows in no story get a number of their own."""
        story = rehearse(self.stream, calibration)
        alone = len(story) + np.arange(len(story))
        return np.where(story < 0, alone, story)[self.places]

    def between(self, first: float, last: float) -> Rehearsed:
        """Return the part with event times from `first` hours up to, and without, `last`."""
        start, stop = np.searchsorted(self.hours, [first, last])
        rows = (self.places >= start) & (self.places < stop)
        return replace(
            self,
            hours=self.hours[start:stop],
            languages=self.languages[start:stop],
            raw=self.raw[start:stop],
            centred=self.centred[start:stop],
            ids=self.ids[rows],
            places=self.places[rows] - start,
            gold=self.gold[rows],
        )


def rehearsed(
    path: Path,
    settings: Settings,
    every: timedelta,
    progress: Progress,
    vectors: Path | None = None,
) -> Rehearsed:
    """Read a labelled corpus, fold its duplicates in a scratch database, encode the rest.

    Args:
        path: JSON Lines with `id`, `story` and `published_at` in each row.
        settings: server to make the database on, and model.
        every: length of a slice.
        progress: shows how far encoding is.
        vectors: folder that vectors are kept in; None encodes anew.

    Raises:
        SourceError: the file cannot be read, or has no article with a story.
        DatabaseError: the scratch database cannot be made.
    """
    model = Model(settings.model, settings.home)
    known = {
        str(row.row_id): row.article
        for row in corpus_rows(path)
        if isinstance(row.article, Article)
    }
    stories = {
        row.id: row.story
        for row in gold_articles(read_rows(path))
        if row.id in known and row.story is not None
    }
    if not stories:
        raise SourceError(f"{path} has no article with a story; tuning needs labelled rows")
    rows = _folded(list(known.values()), settings, model.card.lede_chars)
    kept = [row for row in rows if row.id == row.canonical_id]
    place = {row.id: number for number, row in enumerate(kept)}
    places = {(row.source, row.guid): place[row.canonical_id] for row in rows}
    encoded = corpus_vectors(model, known.values(), vectors, progress)
    vector = dict(zip(map(identity, known.values()), encoded, strict=True))
    raw = np.stack([vector[row.source, row.guid] for row in kept])
    return Rehearsed(
        name=path.name.split(".")[0],
        hours=np.array([(row.event_time - SLICE_ORIGIN).total_seconds() / 3600 for row in kept]),
        every_hours=every.total_seconds() / 3600,
        languages=np.array([row.language.split("-")[0] for row in kept]),
        raw=raw,
        centred=model.alignment.centre(
            raw, [row.language for row in kept], [row.lede_chars for row in kept]
        ),
        ids=np.array(list(stories)),
        places=np.array([places[identity(known[name])] for name in stories]),
        gold=codes(list(stories.values())),
    )


def _folded(articles: Sequence[Article], settings: Settings, lede_chars: int) -> list[Any]:
    """Return what the database has of articles once the cascade has seen them, in order of time."""
    with (
        scratch_database(settings.database, settings.home) as dsn,
        closing(Database(dsn, settings.home, warnings.warn)) as database,
    ):
        run = Run(database.session, "tune", {})
        take_in(run, in_order(articles), moment)
        return list(database.session.rows("rehearsed_articles", lede_chars=lede_chars))


def _steps(corpus: Rehearsed) -> Iterator[Step]:
    """Yield the slices, with vectors aligned by the domain mean that the engine would have learned."""
    nothing = np.zeros(corpus.centred.shape[1])
    before = DomainMean(0, nothing, nothing, 0)
    pending: list[tuple[int, int]] = []
    mean = before
    for start, stop in _slices(corpus):
        learned = mean.take(corpus.centred[start:stop]).refitted()
        if pending and learned.version != mean.version:
            yield from _aligned(corpus, mean, pending)
            pending = []
        mean = learned
        pending.append((start, stop))
    yield from _aligned(corpus, mean, pending)


def _slices(corpus: Rehearsed) -> Iterator[tuple[int, int]]:
    number = np.floor(corpus.hours / corpus.every_hours)
    ends = np.flatnonzero(np.diff(number)) + 1
    yield from zip([0, *ends.tolist()], [*ends.tolist(), len(number)], strict=True)


def _aligned(
    corpus: Rehearsed, mean: DomainMean, slices: Sequence[tuple[int, int]]
) -> Iterator[Step]:
    """Yield the slices in which one mean is in force; they share its vectors."""
    first, last = slices[0][0], slices[-1][1]
    kept = int(np.searchsorted(corpus.hours, corpus.hours[first] - KEPT_HOURS))
    # Rounded as the database keeps them.
    vectors = mean.align(corpus.centred[kept:last]).astype(np.float16).astype(np.float32)
    for start, stop in slices:
        yield Step(start, stop, kept, vectors)
