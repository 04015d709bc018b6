"""A labelled corpus laid out for looking at: vectors before and after alignment, pairs, settings tried."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from clustering.embedding.domain import first_domain_mean
from clustering.engine.corpus import corpus_rows
from clustering.engine.model import Model
from clustering.engine.progress import Silent
from clustering.engine.rehearsing import Rehearsed, rehearsed
from clustering.evaluation.scores import bcubed
from clustering.records import Article
from clustering.settings import Settings
from clustering.stories.calibration import Calibration, load_calibration
from clustering.stories.search import Trial

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from clustering.engine.progress import Progress
    from clustering.evaluation.scores import PRF

_PAIRS_AT_ONCE = 50_000


@dataclass(frozen=True, slots=True)
class PairTable:
    """Pairs of labelled articles that lie near each other in time.

    Attributes:
        raw: cosines of the model's own vectors, float32 (n,).
        aligned: cosines in the space that the engine searches, float32 (n,).
        hours: between the two, float64 (n,).
        same: whether both tell one story, bool (n,).
        languages: languages of both without script or region, in order of the alphabet, str (n, 2).
    """

    raw: NDArray[np.float32]
    aligned: NDArray[np.float32]
    hours: NDArray[np.float64]
    same: NDArray[np.bool_]
    languages: NDArray[np.str_]


@dataclass(frozen=True)
class Workbench:
    """A labelled corpus, encoded once: m labelled articles that are no duplicates, in order of time.

    Made by `Workbench.open`. What it shows of alignment is the space at the end of the corpus; settings
    are tried as the engine meets the articles, hour by hour.

    Attributes:
        corpus: what settings are rehearsed on; its rows count duplicates too.
        articles: length m.
        hours: event times in hours since 2000, float64 (m,), ascending.
        languages: without script or region, str (m,).
        gold: number of each article's story, int64 (m,).
        raw: the model's vectors, float32 (m, dimension).
        aligned: the vectors that are searched, float32 (m, dimension).
        calibration: thresholds in force.
    """

    corpus: Rehearsed
    articles: tuple[Article, ...]
    hours: NDArray[np.float64]
    languages: NDArray[np.str_]
    gold: NDArray[np.int64]
    raw: NDArray[np.float32]
    aligned: NDArray[np.float32]
    calibration: Calibration
    _rows: NDArray[np.int64] = field(repr=False)

    @classmethod
    def open(
        cls,
        corpus: Path | None = None,
        *,
        settings: Settings | None = None,
        every: timedelta = timedelta(hours=1),
        vectors: Path | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Read, fold and encode a labelled corpus.

        Args:
            corpus: JSON Lines with `id`, `story` and `published_at`; None for the sample day.
            settings: server for a scratch database, model, calibration; None for the defaults.
            every: length of a slice of time that is placed at once.
            vectors: folder that vectors are kept in; None encodes anew.
            progress: shows how far encoding is; None shows nothing.

        Raises:
            SourceError: the file cannot be read, or has no article with a story.
            DatabaseError: the scratch database cannot be made.
            CalibrationError: there are no thresholds for the model.
        """
        chosen, shown = settings or Settings(), progress or Silent()
        if corpus is None:
            with as_file(files("clustering.sample") / "sample_day.jsonl") as path:
                return cls._opened(path, chosen, every, vectors, shown)
        return cls._opened(corpus, chosen, every, vectors, shown)

    @classmethod
    def _opened(
        cls,
        path: Path,
        settings: Settings,
        every: timedelta,
        vectors: Path | None,
        progress: Progress,
    ) -> Self:
        model = Model(settings.model, settings.home)
        corpus = rehearsed(path, settings, every, progress, vectors)
        # The first labelled row of each place: the rest are its duplicates.
        places, rows = np.unique(corpus.places, return_index=True)
        known = {str(row.row_id): row.article for row in corpus_rows(path)}
        articles = [known[name] for name in corpus.ids[rows].tolist()]
        found = tuple(article for article in articles if isinstance(article, Article))
        centred = corpus.centred
        mean = first_domain_mean(centred.shape[1], model.alignment.version).take(centred).refitted()
        return cls(
            corpus=corpus,
            articles=found,
            hours=corpus.hours[places],
            languages=corpus.languages[places],
            gold=corpus.gold[rows],
            raw=corpus.raw[places],
            aligned=mean.align(centred[places]),
            calibration=load_calibration(model.card.weights, settings.calibration),
            _rows=rows,
        )

    def pairs(self, within_hours: float = 24.0) -> PairTable:
        """Return every pair of articles at most so many hours apart.

        Args:
            within_hours: the passes compare no articles farther apart than their story gap.
        """
        after = np.searchsorted(self.hours, self.hours + within_hours, side="right")
        counts = after - np.arange(len(after)) - 1
        one = np.repeat(np.arange(len(after)), counts)
        other = one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(counts) - counts, counts)
        both = np.stack([self.languages[one], self.languages[other]], axis=1)
        return PairTable(
            raw=_cosines(self.raw, one, other),
            aligned=_cosines(self.aligned, one, other),
            hours=self.hours[other] - self.hours[one],
            same=self.gold[one] == self.gold[other],
            languages=np.sort(both, axis=1),
        )

    def partition(self, calibration: Calibration | None = None) -> NDArray[np.int64]:
        """Return the story that each article gets, int64 (m,); one of its own where it is in none.

        Args:
            calibration: thresholds to try; None for those in force.
        """
        return self.corpus.partition(calibration or self.calibration)[self._rows]

    def score(self, calibration: Calibration | None = None) -> PRF:
        """Return B-cubed precision, recall and F1 of a setting over all labelled rows."""
        return bcubed(self.corpus.gold, self.corpus.partition(calibration or self.calibration))

    def sweep(self, name: str, values: Iterable[float]) -> list[Trial]:
        """Return the B-cubed F1 of settings that differ from the one in force in a single value.

        Args:
            name: an attribute of `Calibration`.
            values: what it is set to.

        Raises:
            CalibrationError: a value is out of its range.
            TypeError: there is no such attribute.
        """
        changes: list[dict[str, Any]] = [{name: value} for value in values]
        settings = [replace(self.calibration, **change) for change in changes]
        return [Trial(setting, self.score(setting).f1) for setting in settings]


def _cosines(
    vectors: NDArray[np.float32], one: NDArray[np.int64], other: NDArray[np.int64]
) -> NDArray[np.float32]:
    """Return the cosines of pairs of rows, a bounded number of them at a time."""
    found = np.empty(len(one), np.float32)
    for start in range(0, len(one), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        found[part] = np.einsum("ij,ij->i", vectors[one[part]], vectors[other[part]])
    return found
