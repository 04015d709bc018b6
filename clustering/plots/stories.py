"""Stories as a whole: their sizes, and a day of them as a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clustering.plots.figures import BLUE, COLOURS, GREY, name_of, panels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

_MARKS = "os^vDP"
_LABELLED = 12  # stories of a map that the legend names
_SEED = 0
_MOST_NEIGHBOURS = 15.0


def story_sizes(predicted: ArrayLike, gold: ArrayLike | None = None) -> Figure:
    """Draw the sizes of stories, the largest first, on logarithmic axes.

    Args:
        predicted: story of each article, (n,).
        gold: its story in the labels, (n,), drawn beside it; None leaves it out.
    """
    figure, (axes,) = panels(1)
    if gold is not None:
        axes.plot(*_ranked(gold), "s--", color=GREY, label="labels", markersize=4)
    axes.plot(*_ranked(predicted), "o-", color=BLUE, label="engine", markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="rank of the story", ylabel="articles")
    axes.set_title("Sizes of stories")
    axes.legend(frameon=False)
    return figure


def _ranked(labels: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return ranks from 1 and sizes, descending."""
    sizes = np.sort(np.unique(np.asarray(labels), return_counts=True)[1])[::-1]
    return np.arange(1, len(sizes) + 1), sizes


def day_map(vectors: NDArray[np.float32], stories: ArrayLike, titles: Sequence[str] = ()) -> Figure:
    """Draw articles as points, near each other where they are alike, coloured by story.

    t-SNE (van der Maaten and Hinton 2008) on cosine distances: neighbourhoods are true, distances
    between groups are not.

    Args:
        vectors: unit vectors of n articles, 4 or more, float32 (n, dimension).
        stories: story of each, (n,); those alone in theirs are grey.
        titles: of the articles, length n: the legend names the largest stories by one that the
            font has all characters of.
    """
    labels = np.asarray(stories)
    points = flattened(vectors)
    numbers, counts = np.unique(labels, return_counts=True)
    figure, (axes,) = panels(1, width=8.5, height=5.5)
    alone = np.isin(labels, numbers[counts == 1])
    axes.scatter(points[alone, 0], points[alone, 1], s=14, color=GREY, label="alone")
    several = numbers[counts > 1][np.argsort(-counts[counts > 1], kind="stable")]
    for place, number in enumerate(several.tolist()):
        inside = labels == number
        named = bool(titles) and place < _LABELLED
        axes.scatter(
            points[inside, 0],
            points[inside, 1],
            s=30,
            color=COLOURS[place % len(COLOURS)],
            marker=_MARKS[place // len(COLOURS) % len(_MARKS)],
            label=name_of([titles[n] for n in np.flatnonzero(inside).tolist()]) if named else None,
        )
    axes.set(title="One day, coloured by story", xticks=[], yticks=[])
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def flattened(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return t-SNE's place of each vector on a plane, float32 (n, 2); the same each time."""
    from sklearn.manifold import TSNE  # noqa: PLC0415 - takes a second

    perplexity = min(_MOST_NEIGHBOURS, (len(vectors) - 1) / 3)
    plane = TSNE(metric="cosine", init="random", perplexity=perplexity, random_state=_SEED)
    found: NDArray[np.float32] = plane.fit_transform(vectors)
    return found
