"""Thresholds from labelled corpora: tried on their earlier part, reported on their later one."""

from __future__ import annotations

import hashlib
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clustering.embedding.cards import load_card
from clustering.embedding.hardware import usable_cores
from clustering.engine.model import Model
from clustering.engine.pairs import LabelledPairs, judged_pairs, labelled_pairs
from clustering.engine.rehearsing import Rehearsed, rehearsed
from clustering.errors import SourceError
from clustering.evaluation.intervals import Interval, bcubed_interval
from clustering.evaluation.scores import bcubed, pairwise
from clustering.settings import DEFAULT_MODEL
from clustering.store.database import Database
from clustering.stories.calibration import load_calibration
from clustering.stories.search import PAIR_SCALES, SCALES, Plateau, plateau, search, tied

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from pathlib import Path

    from clustering.engine.progress import Progress
    from clustering.settings import Settings
    from clustering.stories.calibration import Calibration
    from clustering.stories.search import Effort

# The share of a corpus' articles, the earliest ones, that settings are tried on.
EARLY_SHARE = 0.6


class Score(NamedTuple):
    """How a setting does on one corpus: B-cubed F1 with its interval, and pairwise F1."""

    corpus: str
    bcubed_f1: float
    interval: Interval
    pairwise_f1: float


class PairScore(NamedTuple):
    """How `link` does on labelled pairs: mean of the shares right of both kinds, 0 to 1."""

    pairs: str
    accuracy: float


class Report(NamedTuple):
    """How a setting does on the later part of each corpus, and on the pairs kept back."""

    corpora: tuple[Score, ...]
    pairs: tuple[PairScore, ...]


@dataclass(frozen=True, slots=True)
class Tuning:
    """What came of a search.

    Attributes:
        model: what `--model` has to name beside the calibration: the model, with `:N` where another
            length of text than its own did better.
        plateau: the setting that it settled on, by mean score on what it saw.
        trials: how many settings were tried, over all texts.
        before: scores of the calibration that the search began from, on what it did not see.
        after: scores of the one it settled on, on the same.
        texts: mean score around the plateau by model, one for each length of text that was tried.
        digests: SHA-256 of each file by its name.
    """

    model: str
    plateau: Plateau
    trials: int
    before: Report
    after: Report
    texts: dict[str, float]
    digests: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as the command line prints it with `--json`."""
        return {
            "model": self.model,
            "calibration": asdict(self.plateau.calibration),
            "early_score": self.plateau.score,
            "surrounding_score": self.plateau.surrounding,
            "least_score": self.plateau.least,
            "trials": self.trials,
            "before": _plain(self.before),
            "after": _plain(self.after),
            "texts": self.texts,
            "digests": self.digests,
        }


@dataclass(frozen=True, slots=True)
class Labels:
    """What a search is to serve, and on which texts.

    Attributes:
        corpora: JSON Lines files with `id`, `story` and `published_at` in each row.
        pairs: JSON Lines files of labelled pairs, see `labelled_pairs`.
        judgements: whether pairs that people decided in the database's review queue count too.
        lede_chars: lengths of body to encode after the title, each tried; none is the model's own.
        vectors: folder that vectors are kept in; None encodes anew.
    """

    corpora: tuple[Path, ...] = ()
    pairs: tuple[Path, ...] = ()
    judgements: bool = False
    lede_chars: tuple[int, ...] = ()
    vectors: Path | None = None


def tune(
    labels: Labels, settings: Settings, every: timedelta, progress: Progress, effort: Effort
) -> Tuning:
    """Search for the thresholds that serve labelled corpora and pairs best, as a mean over them.

    The search sees the early part of each corpus and every other pair; both the calibration that it
    began from and the one it settles on are scored on the rest. A file of pairs counts as much as
    a corpus, and so do the judgements. Pairs alone move the values that they tell of: `link` and the
    penalties of time and language; `match`, `attach` and `merge` follow `link`.

    Args:
        labels: what the search is to serve.
        settings: model, server for scratch databases and of judgements, calibration to begin from.
        every: length of a slice.
        progress: shows how far it is.
        effort: how long to search.

    Raises:
        SourceError: there are no labels, a file cannot be read, has no label, or too few articles
            or pairs to be parted.
        CalibrationError: there is no calibration to begin from.
    """
    if not (labels.corpora or labels.pairs or labels.judgements):
        raise SourceError("nothing to tune on: name labelled files, --pairs or --judgements")
    name = settings.model or DEFAULT_MODEL
    weights = load_card(name).weights
    names = [load_card(f"{weights}:{chars}").name for chars in labels.lede_chars] or [name]
    found = [_tuned(labels, replace(settings, model=n), every, progress, effort) for n in names]
    best = max(found, key=lambda tuning: tuning.plateau.surrounding)
    return replace(
        best,
        trials=sum(tuning.trials for tuning in found),
        texts={tuning.model: tuning.plateau.surrounding for tuning in found},
        digests={path.name: _digest(path) for path in (*labels.corpora, *labels.pairs)},
    )


class _Material(NamedTuple):
    """What settings are tried on: corpora and pairs, either possibly none."""

    corpora: tuple[Rehearsed, ...]
    pairs: tuple[LabelledPairs, ...]

    def score(self, calibration: Calibration) -> float:
        """Return the mean over corpora and pairs, 0 to 1."""
        scores = [bcubed(c.gold, c.partition(calibration)).f1 for c in self.corpora]
        return float(np.mean(scores + [pairs.accuracy(calibration) for pairs in self.pairs]))

    def report(self, calibration: Calibration) -> Report:
        """Return the scores one by one."""
        return Report(
            tuple(_score(corpus, calibration) for corpus in self.corpora),
            tuple(PairScore(pairs.name, pairs.accuracy(calibration)) for pairs in self.pairs),
        )


def _tuned(
    labels: Labels, settings: Settings, every: timedelta, progress: Progress, effort: Effort
) -> Tuning:
    """Search on the text that one model encodes."""
    model = Model(settings.model, settings.home)
    seen, kept_back = _material(labels, settings, model, every, progress)
    start = load_calibration(model.card.weights, settings.calibration)
    scales = SCALES if labels.corpora else PAIR_SCALES
    with (
        progress.stage("tune", effort.rounds * effort.trials) as advance,
        ProcessPoolExecutor(usable_cores(), get_context("spawn"), _begin, (seen,)) as pool,
    ):

        def try_all(tried: Sequence[Calibration]) -> list[float]:
            scores = list(pool.map(_mean_score, tried))
            advance(len(scores))
            return scores

        found = search(try_all, start, effort, scales=scales)
    chosen = plateau(found, scales)
    if not labels.corpora:
        chosen = replace(chosen, calibration=tied(start, chosen.calibration))
    after = kept_back.report(chosen.calibration)
    return Tuning(model.name, chosen, len(found), kept_back.report(start), after, {}, {})


def _material(
    labels: Labels, settings: Settings, model: Model, every: timedelta, progress: Progress
) -> tuple[_Material, _Material]:
    """Return what the search sees, and what is kept back from it."""
    kept = labels.vectors
    corpora = [_parted(rehearsed(p, settings, every, progress, kept)) for p in labels.corpora]
    pairs = [labelled_pairs(path, model, progress, kept).parted() for path in labels.pairs]
    if labels.judgements:
        with closing(Database(settings.database, settings.home, warnings.warn)) as database:
            pairs.append(judged_pairs(database.session, model, progress, kept).parted())
    return (
        _Material(tuple(early for early, _ in corpora), tuple(seen for seen, _ in pairs)),
        _Material(tuple(late for _, late in corpora), tuple(back for _, back in pairs)),
    )


def calibration_text(tuning: Tuning) -> str:
    """Return a calibration file: TOML with the thresholds, and where they come from as comments."""
    today = datetime.now(UTC).date()
    origin = [
        f"# Thresholds for {tuning.model}, tuned on {today} by `stories tune`: the middle of a plateau",
        f"# of {tuning.trials} settings, mean score {tuning.plateau.score:.3f} on the part that it saw of",
    ]
    origin += [f"#   {name} (sha256 {digest})" for name, digest in tuning.digests.items()]
    origin += [
        f"# On the late part of {score.corpus}: {score.bcubed_f1:.3f} ({score.interval.low:.3f} to {score.interval.high:.3f})"
        for score in tuning.after.corpora
    ]
    origin += [
        f"# On pairs kept back of {score.pairs}: {score.accuracy:.3f} right of each kind, on average"
        for score in tuning.after.pairs
    ]
    values = [f"{name} = {value}" for name, value in asdict(tuning.plateau.calibration).items()]
    return "\n".join([*origin, *values, ""])


def write_calibration(text: str, path: Path) -> None:
    """Write a calibration file.

    Raises:
        SourceError: the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(f"cannot write {path}: {error.strerror}; name another file") from error


def _parted(corpus: Rehearsed) -> tuple[Rehearsed, Rehearsed]:
    """Return the early and the late part of a corpus."""
    cut = float(np.quantile(corpus.hours, EARLY_SHARE))
    parts = corpus.between(-np.inf, cut), corpus.between(cut, np.inf)
    if not all(len(part.gold) for part in parts):
        raise SourceError(
            f"{corpus.name} has too few labelled articles, or all at one time: it cannot be parted "
            "into an early part to tune on and a late one to report"
        )
    return parts


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _score(corpus: Rehearsed, calibration: Calibration) -> Score:
    stories = corpus.partition(calibration)
    return Score(
        corpus.name,
        bcubed(corpus.gold, stories).f1,
        bcubed_interval(corpus.gold, stories),
        pairwise(corpus.gold, stories).f1,
    )


def _plain(report: Report) -> dict[str, Any]:
    scores = [score._asdict() | {"interval": list(score.interval)} for score in report.corpora]
    return {"corpora": scores, "pairs": [pairs._asdict() for pairs in report.pairs]}


_seen = [_Material((), ())]  # of a worker process, which gets it once


def _begin(material: _Material) -> None:
    _seen[0] = material


def _mean_score(calibration: Calibration) -> float:
    return _seen[0].score(calibration)
