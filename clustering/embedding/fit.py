"""Fits language offsets on parallel text: documents that say the same in every language.

    python -m clustering.embedding.fit PARALLEL.jsonl --out models/NAME.offsets.npz

A vector is taken as the sum of what its document says and what its language adds. Both are
estimated by least squares, so that a language which lacks some documents is not charged with
their absence; on complete data this is `mean of language - mean over languages`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clustering.embedding.align import Alignment, write_alignment
from clustering.embedding.cards import DEFAULT_MODEL, load_card
from clustering.errors import SourceError
from clustering.settings import default_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clustering.embedding.cards import ModelCard
    from clustering.embedding.encoder import Encoder

# Of 8, 16 and 32 the best when a language is left out of the fit (figures in align.py).
NEUTRAL_RANK = 16
MOST_ROUNDS = 200
SETTLED = 1e-7


def fit_alignment(
    vectors: NDArray[np.float32], languages: Sequence[str], events: Sequence[str]
) -> Alignment:
    """Fit an alignment.

    Args:
        vectors: raw unit vectors of shape (2, n, d): of the titles alone, and of the titles with
            their ledes.
        languages: n BCP 47 tags.
        events: n names of the document that each row is a translation of.

    Returns:
        The alignment; its version is a digest of its numbers.

    Raises:
        ValueError: there is no row, or the lengths differ.
    """
    if not 0 < vectors.shape[1] == len(languages) == len(events):
        raise ValueError("vectors, languages and events differ in number, or there are none")
    names, language = np.unique(np.array(languages), return_inverse=True)
    _, event = np.unique(np.array(events), return_inverse=True)
    fits = [_fit_one(kind.astype(np.float64), language, event) for kind in vectors]
    offsets = np.stack([offset for offset, _ in fits])
    numbers = (
        offsets.astype(np.float32),
        np.stack([mean for _, mean in fits]).astype(np.float32),
        main_directions(offsets.mean(axis=0), NEUTRAL_RANK).astype(np.float32),
    )
    digest = hashlib.sha256(b"".join(number.tobytes() for number in numbers)).hexdigest()
    return Alignment(tuple(names.tolist()), *numbers, version=digest[:12])


def fit_offsets(
    vectors: NDArray[np.float64], language: NDArray[np.intp], event: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split vectors into a part by language and a part by event, by least squares.

    Args:
        vectors: shape (n, d).
        language: numbers from 0 to L - 1, of shape (n,).
        event: numbers from 0 to E - 1, of shape (n,).

    Returns:
        Offsets of shape (L, d), which have mean zero over languages, and what the events say, of
        shape (E, d).
    """
    offsets = np.zeros((language.max() + 1, vectors.shape[1]))
    for _ in range(MOST_ROUNDS):
        said = group_means(vectors - offsets[language], event)
        fresh = group_means(vectors - said[event], language)
        fresh -= fresh.mean(axis=0)
        change = np.abs(fresh - offsets).max()
        offsets = fresh
        if change < SETTLED:
            break
    return offsets, group_means(vectors - offsets[language], event)


def shrink_factors(
    residuals: NDArray[np.float64],
    offsets: NDArray[np.float64],
    language: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Return by how much each offset is to be believed, given how many rows it rests on.

    Empirical Bayes (Efron and Morris 1975): with variance s of one row about its offset and
    variance t of the true offsets, an offset from n rows is best multiplied by n / (n + s / t).

    Args:
        residuals: what offsets and events leave of the vectors, of shape (n, d).
        offsets: shape (L, d).
        language: shape (n,).

    Returns:
        Factors between 0 and 1, of shape (L,).
    """
    rows = np.bincount(language, minlength=len(offsets)).astype(np.float64)
    noise = (residuals**2).sum(axis=1).mean()
    spread = max((offsets**2).sum(axis=1).mean() - (noise / rows).mean(), 0.0)
    if spread == 0.0:
        return np.zeros(len(offsets))
    factors: NDArray[np.float64] = rows * spread / (rows * spread + noise)
    return factors


def group_means(values: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the mean of each group's rows.

    Args:
        values: shape (n, d).
        group: numbers from 0 to G - 1, each at least once, of shape (n,).

    Returns:
        Means of shape (G, d).
    """
    sums = np.zeros((group.max() + 1, values.shape[1]))
    np.add.at(sums, group, values)
    means: NDArray[np.float64] = sums / np.bincount(group)[:, None]
    return means


def main_directions(points: NDArray[np.float64], rank: int) -> NDArray[np.float64]:
    """Return the directions in which centred points vary most.

    Args:
        points: shape (L, d).
        rank: at most so many.

    Returns:
        Orthonormal rows of shape (r, d), r being the smallest of rank, L - 1 and d.
    """
    centred = points - points.mean(axis=0)
    directions: NDArray[np.float64] = np.linalg.svd(centred, full_matrices=False)[2]
    return directions[: min(rank, max(len(points) - 1, 0))]


def _fit_one(
    vectors: NDArray[np.float64], language: NDArray[np.intp], event: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    offsets, said = fit_offsets(vectors, language, event)
    residuals = vectors - offsets[language] - said[event]
    return offsets * shrink_factors(residuals, offsets, language)[:, None], said.mean(axis=0)


def read_parallel(path: Path) -> list[dict[str, Any]]:
    """Read parallel text.

    Args:
        path: JSON Lines with `id` (document, colon, language), `title`, `body` and `language`.

    Returns:
        The rows.

    Raises:
        SourceError: the file cannot be read, or a line lacks one of these.
    """
    rows = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                row = json.loads(line)
                if not {"id", "title", "body", "language"} <= row.keys():
                    raise SourceError(f"{path}:{number}: needs id, title, body and language")
                rows.append(row)
    except (OSError, ValueError, AttributeError) as error:
        raise SourceError(f"cannot read parallel text from {path}: {error}") from error
    return rows


def fit_rows(rows: Sequence[dict[str, Any]], card: ModelCard, encoder: Encoder) -> Alignment:
    """Encode parallel text, bare titles and titles with ledes, and fit an alignment.

    Args:
        rows: as `read_parallel` returns them.
        card: the model's card, for its text recipe.
        encoder: the model.

    Returns:
        The alignment.
    """
    titles = encoder.encode([row["title"] for row in rows])
    full = encoder.encode([card.text(row["title"], row["body"]) for row in rows])
    languages = [row["language"] for row in rows]
    events = [row["id"].rsplit(":", 1)[0] for row in rows]
    return fit_alignment(np.stack([titles, full]), languages, events)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit an alignment from the command line and write it.

    Args:
        arguments: words of the command line; those of the process where None.

    Raises:
        SourceError: the parallel text cannot be read.
        ModelError: the model cannot be loaded.
    """
    from clustering.embedding.encoder import open_encoder  # noqa: PLC0415 - fitting needs no torch

    parser = argparse.ArgumentParser(description="Fit language offsets on parallel text.")
    parser.add_argument("parallel", type=Path, help="JSON Lines, one translation a line")
    parser.add_argument("--out", type=Path, required=True, help="the .npz to write")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="card, folder or hub name")
    parser.add_argument("--home", type=Path, default=None, help="folder of expanded models")
    chosen = parser.parse_args(arguments)
    rows = read_parallel(chosen.parallel)
    encoder = open_encoder(chosen.model, chosen.home or default_home())
    alignment = fit_rows(rows, load_card(chosen.model), encoder)
    write_alignment(alignment, chosen.out)
    sys.stdout.write(
        f"{chosen.out}: {len(alignment.languages)} languages, version {alignment.version}\n"
    )


if __name__ == "__main__":
    main()
