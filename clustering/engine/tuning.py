"""Thresholds from labelled corpora: tried on their earlier part, reported on their later one."""

from __future__ import annotations

import hashlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from clustering.embedding.hardware import usable_cores
from clustering.engine.model import Model
from clustering.engine.pairs import LabelledPairs, labelled_pairs
from clustering.engine.rehearsing import Rehearsed, rehearsed
from clustering.errors import SourceError
from clustering.evaluation.intervals import Interval, bcubed_interval
from clustering.evaluation.scores import bcubed, pairwise
from clustering.stories.calibration import load_calibration
from clustering.stories.search import Plateau, plateau, search

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from pathlib import Path

    from clustering.engine.progress import Progress
    from clustering.settings import Settings
    from clustering.stories.calibration import Calibration

# The share of a corpus' articles, the earliest ones, that settings are tried on.
EARLY_SHARE = 0.6
ROUNDS = 8
TRIALS = 40


class Score(NamedTuple):
    """How a setting does on one corpus: B-cubed F1 with its interval, and pairwise F1."""

    corpus: str
    bcubed_f1: float
    interval: Interval
    pairwise_f1: float


@dataclass(frozen=True, slots=True)
class Tuning:
    """What came of a search.

    Attributes:
        plateau: the setting that it settled on, by mean score on the early parts.
        trials: how many settings were tried.
        before: scores of the calibration that the search began from, on the late parts.
        after: scores of the one it settled on, on the late parts.
        digests: SHA-256 of each corpus by its file's name.
    """

    plateau: Plateau
    trials: int
    before: tuple[Score, ...]
    after: tuple[Score, ...]
    digests: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as the command line prints it with `--json`."""
        return {
            "calibration": asdict(self.plateau.calibration),
            "early_score": self.plateau.score,
            "surrounding_score": self.plateau.surrounding,
            "least_score": self.plateau.least,
            "trials": self.trials,
            "before": [_plain(score) for score in self.before],
            "after": [_plain(score) for score in self.after],
            "digests": self.digests,
        }


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to search: `rounds` that narrow, `trials` in each."""

    rounds: int = ROUNDS
    trials: int = TRIALS


@dataclass(frozen=True, slots=True)
class Labels:
    """What a search is to serve.

    Attributes:
        corpora: JSON Lines files with `id`, `story` and `published_at` in each row.
        pairs: JSON Lines files of labelled pairs, see `labelled_pairs`.
        vectors: folder that vectors are kept in; None encodes anew.
    """

    corpora: tuple[Path, ...]
    pairs: tuple[Path, ...] = ()
    vectors: Path | None = None


def tune(
    labels: Labels, settings: Settings, every: timedelta, progress: Progress, effort: Effort
) -> Tuning:
    """Search for the thresholds that serve some labelled corpora best, as a mean over them.

    The search sees the early part of each corpus; both the calibration that it began from and the
    one it settles on are scored on the late parts, which it never saw. A file of pairs counts as
    much as a corpus.

    Args:
        labels: what the search is to serve.
        settings: model, server for scratch databases, and calibration to begin from.
        every: length of a slice.
        progress: shows how far it is.
        effort: how long to search.

    Raises:
        SourceError: a file cannot be read, has no label, or too few articles to be parted.
        CalibrationError: there is no calibration to begin from.
    """
    model = Model(settings.model, settings.home)
    corpora = [rehearsed(p, settings, every, progress, labels.vectors) for p in labels.corpora]
    pairs = [labelled_pairs(path, model, progress, labels.vectors) for path in labels.pairs]
    early, late = zip(*map(_parted, corpora), strict=True)
    start = load_calibration(model.card.name, settings.calibration)
    workers = usable_cores()
    with (
        progress.stage("tune", effort.rounds * effort.trials) as advance,
        ProcessPoolExecutor(workers, get_context("spawn"), _begin, (early, pairs)) as pool,
    ):

        def try_all(tried: Sequence[Calibration]) -> list[float]:
            scores = list(pool.map(_mean_score, tried))
            advance(len(scores))
            return scores

        found = search(try_all, start, rounds=effort.rounds, trials=effort.trials)
    chosen = plateau(found)
    return Tuning(
        chosen,
        len(found),
        tuple(_score(corpus, start) for corpus in late),
        tuple(_score(corpus, chosen.calibration) for corpus in late),
        {path.name: _digest(path) for path in (*labels.corpora, *labels.pairs)},
    )


def calibration_text(tuning: Tuning, model: str) -> str:
    """Return a calibration file: TOML with the thresholds, and where they come from as comments."""
    today = datetime.now(UTC).date()
    origin = [
        f"# Thresholds for {model}, tuned on {today} by `stories tune`: the middle of a plateau"
    ]
    origin += [
        f"# of {tuning.trials} settings, mean score {tuning.plateau.score:.3f} on the early parts of"
    ]
    origin += [f"#   {name} (sha256 {digest})" for name, digest in tuning.digests.items()]
    origin += [
        f"# On the late part of {score.corpus}: {score.bcubed_f1:.3f} ({score.interval.low:.3f} to {score.interval.high:.3f})"
        for score in tuning.after
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


def _plain(score: Score) -> dict[str, Any]:
    return score._asdict() | {"interval": list(score.interval)}


_corpora: list[Rehearsed] = []  # of a worker process, which gets them once
_pairs: list[LabelledPairs] = []


def _begin(corpora: Sequence[Rehearsed], pairs: Sequence[LabelledPairs]) -> None:
    _corpora[:], _pairs[:] = corpora, pairs


def _mean_score(calibration: Calibration) -> float:
    scores = [bcubed(corpus.gold, corpus.partition(calibration)).f1 for corpus in _corpora]
    return float(np.mean(scores + [pairs.accuracy(calibration) for pairs in _pairs]))
