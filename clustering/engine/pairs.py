"""Labelled pairs of articles: what thresholds can be tuned on where nobody labelled whole stories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from clustering.embedding.align import normalise
from clustering.engine.vectors import corpus_vectors
from clustering.errors import SourceError
from clustering.evaluation.files import read_rows
from clustering.ingest.language import settle_language
from clustering.records import Article

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from clustering.engine.model import Model
    from clustering.engine.progress import Progress
    from clustering.store.session import Session
    from clustering.stories.calibration import Calibration

# Of an edit, which says the same of every pair across a story: what a person labels one by one should count.
_MOST_OF_EDIT = 10
_LABELS = {0: False, 1: True, "different": False, "same": True}


class Pair(NamedTuple):
    """Two articles, the hours between them (0 where no times are known), and whether both tell one story."""

    one: Article
    other: Article
    hours: float
    same: bool


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs of articles, each telling one story or two.

    Attributes:
        name: of the file, or `judgements`.
        cosines: of the aligned vectors of n pairs, float32 (n,).
        hours: between the two, 0 where no times are known, float32 (n,).
        one_language: whether both are in one language, bool (n,).
        same: whether both tell one story, bool (n,).
    """

    name: str
    cosines: NDArray[np.float32]
    hours: NDArray[np.float32]
    one_language: NDArray[np.bool_]
    same: NDArray[np.bool_]

    def accuracy(self, calibration: Calibration) -> float:
        """Return how well `link` tells the pairs apart: the mean of the shares right of both kinds, 0 to 1.

        Both kinds count alike, however many pairs there are of each.
        """
        lost = calibration.time_penalty * np.log1p(self.hours)
        scores = self.cosines - lost - calibration.language_penalty * self.one_language
        linked = scores >= calibration.link
        return float((linked[self.same].mean() + (~linked[~self.same]).mean()) / 2)

    def parted(self) -> tuple[Self, Self]:
        """Return the pairs to tune on and those to report: every other one of either kind.

        Raises:
            SourceError: there are not two pairs of each kind.
        """
        kinds = np.flatnonzero(self.same), np.flatnonzero(~self.same)
        if min(map(len, kinds)) < 2:
            raise SourceError(
                f"{self.name}: tuning needs two pairs that are the same and two different"
            )
        return self._some(kinds, 0), self._some(kinds, 1)

    def _some(self, kinds: tuple[NDArray[np.int64], ...], first: int) -> Self:
        rows = np.sort(np.concatenate([kind[first::2] for kind in kinds]))
        return replace(
            self,
            cosines=self.cosines[rows],
            hours=self.hours[rows],
            one_language=self.one_language[rows],
            same=self.same[rows],
        )


def labelled_pairs(
    path: Path, model: Model, progress: Progress, vectors: Path | None = None
) -> LabelledPairs:
    """Read and encode labelled pairs.

    Args:
        path: JSON Lines with `a_title`, `a_body`, `b_title`, `b_body`, `label` (1 or "same", 0 or
            "different") and, where known, `a_lang` and `b_lang`.
        model: encodes.
        progress: shows how far encoding is.
        vectors: folder that vectors are kept in; None encodes anew.

    Raises:
        SourceError: the file cannot be read, a row is malformed, or all pairs are of one kind.
    """
    pairs = [_row(row.content, str(path), row.line) for row in read_rows(path)]
    _require_both(pairs, str(path))
    return _encoded(path.name.split(".")[0], pairs, model, progress, vectors)


def judged_pairs(
    session: Session, model: Model, progress: Progress, vectors: Path | None = None
) -> LabelledPairs:
    """Read and encode the pairs that people decided in the review queue, in order of decision.

    Args:
        session: any.
        model: encodes.
        progress: shows how far encoding is.
        vectors: folder that vectors are kept in; None encodes anew.

    Raises:
        SourceError: there is no judgement, or all are of one kind.
    """
    pairs = [
        Pair(Article(*row[:3]), Article(*row[3:6]), row.hours, row.verdict == "same")
        for row in session.rows("judged_pairs", most_of_edit=_MOST_OF_EDIT)
    ]
    _require_both(pairs, "the review queue")
    return _encoded("judgements", pairs, model, progress, vectors)


def _require_both(pairs: Sequence[Pair], source: str) -> None:
    if {pair.same for pair in pairs} != {True, False}:
        raise SourceError(f"{source} needs pairs of both kinds, same and different")


def _encoded(
    name: str, pairs: Sequence[Pair], model: Model, progress: Progress, vectors: Path | None
) -> LabelledPairs:
    articles = [article for pair in pairs for article in pair[:2]]
    languages = [settle_language(a.language, a.title, a.body)[0] for a in articles]
    raw = corpus_vectors(model, articles, vectors, progress)
    ledes = [len(article.body[: model.card.lede_chars]) for article in articles]
    aligned = normalise(model.alignment.centre(raw, languages, ledes))
    tongues = np.array([language.split("-")[0] for language in languages])
    return LabelledPairs(
        name=name,
        cosines=np.einsum("ij,ij->i", aligned[::2], aligned[1::2]),
        hours=np.array([pair.hours for pair in pairs], np.float32),
        one_language=tongues[::2] == tongues[1::2],
        same=np.array([pair.same for pair in pairs]),
    )


def _row(content: object, source: str, line: int) -> Pair:
    if not isinstance(content, dict):
        raise SourceError(f"{source}:{line}: not a JSON object; write one pair a line")
    label = content.get("label")
    if not isinstance(label, int | str) or label not in _LABELS:
        raise SourceError(f"{source}:{line}: label is {label!r}; write same or different (or 1, 0)")
    one, other = (_side(content, side, source, line) for side in ("a", "b"))
    return Pair(one, other, 0, _LABELS[label])


def _side(content: Mapping[str, Any], side: str, source: str, line: int) -> Article:
    title, body = content.get(f"{side}_title"), content.get(f"{side}_body") or ""
    if not isinstance(title, str) or not title.strip() or not isinstance(body, str):
        raise SourceError(f"{source}:{line}: {side}_title is missing; both articles need a title")
    language = content.get(f"{side}_lang")
    return Article(title=title, body=body, language=language if isinstance(language, str) else None)
