"""The engine beside baseline systems, on the same corpora and the same vectors."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from clustering.engine.corpus import corpus_rows, replay
from clustering.engine.model import Model
from clustering.engine.replay import moment
from clustering.engine.vectors import aligned_vectors, corpus_vectors
from clustering.errors import SourceError
from clustering.evaluation import evaluate_rows
from clustering.evaluation.baselines import (
    PUBLISHED_THRESHOLD,
    AverageLinkage,
    best_threshold,
    published_passes,
)
from clustering.evaluation.files import gold_articles, read_rows
from clustering.evaluation.scores import bcubed
from clustering.records import Article

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import timedelta

    from numpy.typing import NDArray

    from clustering.engine.progress import Progress
    from clustering.evaluation import Evaluation
    from clustering.records import Refusal
    from clustering.settings import Settings

    Cluster = Callable[[float], NDArray[np.int64]]

RAW = "raw"
ALIGNED = "aligned"
ENGINE = "this engine"
PUBLISHED = "published passes"
LINKAGE = "average linkage"


@dataclass(frozen=True, slots=True)
class SystemScore:
    """How one system does on every corpus, with one setting for all.

    Attributes:
        system: `this engine`, `published passes` or `average linkage`.
        space: `raw` or `aligned` vectors.
        threshold: cosine that it clusters at; None for the engine, which has a calibration.
        chosen: whether the threshold is the best for these corpora, found by trying.
        evaluations: one for each corpus, in order.
    """

    system: str
    space: str
    threshold: float | None
    chosen: bool
    evaluations: tuple[Evaluation, ...]

    @property
    def mean_bcubed(self) -> float:
        """Mean over the corpora of B-cubed F1."""
        return float(np.mean([found.bcubed.f1 for found in self.evaluations]))

    @property
    def mean_pairwise(self) -> float:
        """Mean over the corpora of pairwise F1."""
        return float(np.mean([found.pairwise.f1 for found in self.evaluations]))

    def to_dict(self, names: Sequence[str]) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers; `names` are those of the corpora."""
        pairs = zip(names, self.evaluations, strict=True)
        return {
            "system": self.system,
            "space": self.space,
            "threshold": self.threshold,
            "chosen": self.chosen,
            "mean_bcubed_f1": self.mean_bcubed,
            "mean_pairwise_f1": self.mean_pairwise,
            "corpora": [{"name": name, **found.to_dict()} for name, found in pairs],
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Baselines and the engine on the same corpora.

    Attributes:
        names: of the corpora: their files' names without suffixes.
        systems: baselines, then the engine.
        refusals: rows of the corpora that were refused.
    """

    names: tuple[str, ...]
    systems: tuple[SystemScore, ...]
    refusals: tuple[Refusal, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as the command line prints it with `--json`."""
        return {
            "systems": [system.to_dict(self.names) for system in self.systems],
            "gains": self.gains,
            "refusals": [str(refusal) for refusal in self.refusals],
        }

    @property
    def gains(self) -> dict[str, float]:
        """How far the engine's mean B-cubed F1 is above others, in parts of 1.

        `as_published`: the published passes at their published threshold. `best_raw`: the same at
        their best threshold. `best_aligned`: the better of the baselines in the engine's own space.
        """
        engine, others = self.systems[-1], self.systems[:-1]
        groups = {
            "as_published": [other for other in others if not other.chosen],
            "best_raw": [other for other in others if other.chosen and other.space == RAW],
            "best_aligned": [other for other in others if other.space == ALIGNED],
        }
        return {name: _gain(engine, members) for name, members in groups.items()}


@dataclass(frozen=True, slots=True)
class _Corpus:
    """A labelled corpus with the vectors of its articles, each id once.

    Attributes:
        path: its file.
        ids: of n articles.
        hours: when each was published, in hours since 1970, float64 (n,).
        gold: number of each article's story, int64 (n,); -1 where it is not labelled.
        spaces: vectors by space, each float32 (n, d).
    """

    path: Path
    ids: Sequence[str]
    hours: NDArray[np.float64]
    gold: NDArray[np.int64]
    spaces: Mapping[str, NDArray[np.float32]]

    def bcubed(self, labels: NDArray[np.int64]) -> float:
        """Return B-cubed F1 of labels, int64 (n,), over the labelled articles."""
        known = self.gold >= 0
        return bcubed(self.gold[known], labels[known]).f1


def compare(
    paths: Sequence[Path],
    settings: Settings,
    every: timedelta,
    progress: Progress,
    vectors: Path | None = None,
) -> Comparison:
    """Replay labelled corpora and run the baselines on them.

    Baselines are the published passes on raw vectors, as published and at their best threshold,
    and in the engine's aligned space, at their best, as is average linkage of the whole corpus.
    A best threshold is the one with the highest mean B-cubed F1 over these very corpora, which
    nobody could know beforehand: the engine's calibration has no such help.

    Args:
        paths: JSON Lines with `id`, `story` and `published_at` in each row.
        settings: server, model, calibration of the engine.
        every: length of the engine's step; the published passes step by the hour.
        progress: shows how far it is.
        vectors: folder that vectors are kept in; None forgets them afterwards.

    Raises:
        SourceError: a file cannot be read, has no label, or a row of it is malformed.
    """
    with ExitStack() as opened:
        kept = vectors or Path(opened.enter_context(TemporaryDirectory(prefix="stories-")))
        model = Model(settings.model, settings.home)
        corpora = [_read(path, model, kept, progress) for path in paths]
        baselines = _baselines(corpora, progress)
        played = [replay(path, settings, every, progress, kept) for path in paths]
    evaluations = [
        _evaluation(corpus.path, replayed.assignments)
        for corpus, replayed in zip(corpora, played, strict=True)
    ]
    engine = SystemScore(ENGINE, ALIGNED, None, chosen=False, evaluations=tuple(evaluations))
    refusals = (refusal for replayed in played for refusal in replayed.report.refusals)
    return Comparison(
        tuple(path.name.split(".")[0] for path in paths), (*baselines, engine), tuple(refusals)
    )


def _read(path: Path, model: Model, kept: Path, progress: Progress) -> _Corpus:
    stories = {article.id: article.story for article in gold_articles(read_rows(path))}
    known: dict[str, Article] = {}
    for row in corpus_rows(path):
        if isinstance(row.article, Article):
            known.setdefault(str(row.row_id), row.article)
    labels = [stories[name] for name in known]
    names = sorted({label for label in labels if label is not None})
    if not names:
        raise SourceError(f"{path} has no article with a story; baselines need labelled rows")
    numbers = {name: number for number, name in enumerate(names)}
    articles = list(known.values())
    raw = corpus_vectors(model, articles, kept, progress)
    return _Corpus(
        path=path,
        ids=list(known),
        hours=np.array([moment(article).timestamp() / 3600 for article in articles]),
        gold=np.array([-1 if label is None else numbers[label] for label in labels]),
        spaces={RAW: raw, ALIGNED: aligned_vectors(model, articles, raw)},
    )


def _baselines(corpora: Sequence[_Corpus], progress: Progress) -> list[SystemScore]:
    trials: list[tuple[str, str, float | None]] = [
        (PUBLISHED, RAW, PUBLISHED_THRESHOLD),
        (PUBLISHED, RAW, None),
        (PUBLISHED, ALIGNED, None),
        (LINKAGE, ALIGNED, None),
    ]
    articles = sum(len(corpus.ids) for corpus in corpora)
    found = []
    with progress.stage("baselines", articles * len(trials)) as advance:
        for system, space, threshold in trials:
            found.append(_baseline(system, space, threshold, corpora))
            advance(articles)
    return found


def _baseline(
    system: str, space: str, threshold: float | None, corpora: Sequence[_Corpus]
) -> SystemScore:
    clusters = [_cluster(system, corpus.spaces[space], corpus.hours) for corpus in corpora]

    def mean_bcubed(tried: float) -> float:
        pairs = zip(corpora, clusters, strict=True)
        return float(np.mean([corpus.bcubed(cluster(tried)) for corpus, cluster in pairs]))

    used = best_threshold(mean_bcubed) if threshold is None else threshold
    evaluations = [
        _evaluation(corpus.path, _assignments(corpus.ids, cluster(used)))
        for corpus, cluster in zip(corpora, clusters, strict=True)
    ]
    return SystemScore(system, space, used, threshold is None, tuple(evaluations))


def _cluster(system: str, vectors: NDArray[np.float32], hours: NDArray[np.float64]) -> Cluster:
    if system == LINKAGE:
        return AverageLinkage(vectors).labels
    return partial(published_passes, vectors, hours)


def _assignments(ids: Sequence[str], labels: NDArray[np.int64]) -> list[Mapping[str, object]]:
    return [
        {"id": name, "story_id": label} for name, label in zip(ids, labels.tolist(), strict=True)
    ]


def _evaluation(path: Path, assignments: Iterable[Mapping[str, object]]) -> Evaluation:
    """Score assignments against a corpus; of an id that comes again, its first place counts."""
    places: dict[object, Mapping[str, object]] = {}
    for row in assignments:
        if row["id"] is not None:
            places.setdefault(str(row["id"]), row)
    gold = (cast("Mapping[str, object]", row.content) for row in read_rows(path))
    return evaluate_rows(gold, places.values())


def _gain(engine: SystemScore, others: Iterable[SystemScore]) -> float:
    return engine.mean_bcubed - max(other.mean_bcubed for other in others)
