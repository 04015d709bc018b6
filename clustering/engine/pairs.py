"""Labelled pairs of articles: what thresholds can be tuned on where nobody labelled whole stories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering.embedding.align import normalise
from clustering.engine.vectors import corpus_vectors
from clustering.errors import SourceError
from clustering.evaluation.files import read_rows
from clustering.ingest.language import settle_language
from clustering.records import Article

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from clustering.engine.model import Model
    from clustering.engine.progress import Progress
    from clustering.stories.calibration import Calibration

_LABELS = {0: False, 1: True, "different": False, "same": True}


@dataclass(frozen=True, slots=True)
class LabelledPairs:
    """Pairs of articles, each telling one story or two.

    Attributes:
        name: of the file.
        cosines: of the aligned vectors of n pairs, float32 (n,).
        one_language: whether both are in one language, bool (n,).
        same: whether both tell one story, bool (n,).
    """

    name: str
    cosines: NDArray[np.float32]
    one_language: NDArray[np.bool_]
    same: NDArray[np.bool_]

    def accuracy(self, calibration: Calibration) -> float:
        """Return how well `link` tells the pairs apart: the mean of the shares right of both kinds, 0 to 1.

        Both kinds count alike, however many pairs there are of each. Pairs have no times, so time
        speaks against none.
        """
        scores = self.cosines - calibration.language_penalty * self.one_language
        linked = scores >= calibration.link
        return float((linked[self.same].mean() + (~linked[~self.same]).mean()) / 2)


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
    rows = [_row(row.content, str(path), row.line) for row in read_rows(path)]
    same = np.array([label for _, _, label in rows], bool)
    if not rows or same.all() or not same.any():
        raise SourceError(f"{path} needs pairs of both kinds, same and different")
    articles = [article for one, other, _ in rows for article in (one, other)]
    languages = [settle_language(a.language, a.title, a.body)[0] for a in articles]
    raw = corpus_vectors(model, articles, vectors, progress)
    ledes = [len(article.body[: model.card.lede_chars]) for article in articles]
    aligned = normalise(model.alignment.centre(raw, languages, ledes))
    tongues = np.array([language.split("-")[0] for language in languages])
    return LabelledPairs(
        name=path.name.split(".")[0],
        cosines=np.einsum("ij,ij->i", aligned[::2], aligned[1::2]),
        one_language=tongues[::2] == tongues[1::2],
        same=same,
    )


def _row(content: object, source: str, line: int) -> tuple[Article, Article, bool]:
    if not isinstance(content, dict):
        raise SourceError(f"{source}:{line}: not a JSON object; write one pair a line")
    label = content.get("label")
    if not isinstance(label, int | str) or label not in _LABELS:
        raise SourceError(f"{source}:{line}: label is {label!r}; write same or different (or 1, 0)")
    return _side(content, "a", source, line), _side(content, "b", source, line), _LABELS[label]


def _side(content: Mapping[str, Any], side: str, source: str, line: int) -> Article:
    title, body = content.get(f"{side}_title"), content.get(f"{side}_body") or ""
    if not isinstance(title, str) or not title.strip() or not isinstance(body, str):
        raise SourceError(f"{source}:{line}: {side}_title is missing; both articles need a title")
    language = content.get(f"{side}_lang")
    return Article(title=title, body=body, language=language if isinstance(language, str) else None)
