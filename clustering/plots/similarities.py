"""How alike articles are: histograms, language pairs, one story's matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clustering.plots.figures import BLUE, GREY, ORANGE, panels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from clustering.engine.workbench import PairTable

_BINS = 60
# Below, a median says more of the articles than of their languages.
LEAST_PAIRS = 3


def similarity_histograms(pairs: PairTable, threshold: float | None = None) -> Figure:
    """Draw the cosines of pairs of one story and of two, before and after alignment.

    Each kind has the area 1: there are far more pairs of two stories.

    Args:
        pairs: of labelled articles, some of one story.
        threshold: drawn as a line among the aligned ones, for example `link`.
    """
    figure, axes = panels(2)
    _histogram(axes[0], pairs.raw, pairs.same, "Before alignment")
    _histogram(axes[1], pairs.aligned, pairs.same, "After alignment")
    if threshold is not None:
        axes[1].axvline(threshold, color="black", linewidth=1, linestyle="--", label="threshold")
    axes[1].legend(frameon=False)
    return figure


def _histogram(
    axes: Axes, cosines: NDArray[np.float32], same: NDArray[np.bool_], title: str
) -> None:
    bins = np.linspace(float(cosines.min()), float(cosines.max()), _BINS + 1).tolist()
    style = {"bins": bins, "density": True, "alpha": 0.7}
    axes.hist(cosines[~same], color=GREY, label="two stories", **style)
    axes.hist(cosines[same], color=BLUE, label="one story", **style)
    axes.set(title=title, xlabel="cosine", ylabel="density of pairs")


def language_pairs(pairs: PairTable, most: int = 10) -> Figure:
    """Draw the median cosine of pairs of one story by their languages, before and after alignment.

    An aligned space has one colour: two languages are as near to each other as one is to itself.

    Args:
        pairs: of labelled articles.
        most: how many languages, those with most pairs of one story.
    """
    languages = pairs.languages[pairs.same]
    names, counts = np.unique(languages, return_counts=True)
    shown = sorted(names[np.argsort(-counts, kind="stable")][:most].tolist())
    side = 1.6 + 0.45 * len(shown)
    figure, axes = panels(2, width=side + 0.6, height=side)
    for each, name in zip(axes, ("raw", "aligned"), strict=True):
        cosines = getattr(pairs, name)[pairs.same]
        _heat_map(each, median_table(cosines, languages, shown), shown)
    axes[0].set_title("Median cosine before")
    axes[1].set_title("and after alignment")
    return figure


def median_table(
    cosines: NDArray[np.float32], languages: NDArray[np.str_], shown: Sequence[str]
) -> NDArray[np.float64]:
    """Return the median cosine for each pair of languages, float64 (k, k); NaN below `LEAST_PAIRS` pairs.

    Args:
        cosines: of n pairs, float (n,).
        languages: of both articles, in order of the alphabet, str (n, 2).
        shown: k languages, in order of the alphabet.
    """
    table = np.full((len(shown), len(shown)), np.nan)
    for row, one in enumerate(shown):
        for column, other in enumerate(shown[row:], row):
            found = cosines[(languages == (one, other)).all(axis=1)]
            if len(found) >= LEAST_PAIRS:
                table[row, column] = table[column, row] = np.median(found)
    return table


def _heat_map(axes: Axes, table: NDArray[np.float64], names: Sequence[str]) -> None:
    axes.imshow(table, cmap="viridis")
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    middle = np.nanmean(table) if np.isfinite(table).any() else 0.0
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            colour = "black" if value > middle else "white"
            text = f"{value:.2f}".removeprefix("0")
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=7)


def similarity_matrix(
    vectors: NDArray[np.float32], groups: Sequence[str], title: str = "Cosines inside one story"
) -> Figure:
    """Draw the cosines among some articles, those of one group side by side.

    A story of one event is one bright square; a wrong merge is two, with a dark rest.

    Args:
        vectors: unit vectors, float32 (n, dimension).
        groups: what each article is about, or its language; length n.
        title: of the chart.
    """
    order = sorted(range(len(groups)), key=lambda place: groups[place])
    ordered = [groups[place] for place in order]
    side = 3.2 + 0.06 * len(order)
    figure, (axes,) = panels(1, width=side + 1.4, height=side)
    image = axes.imshow(vectors[order] @ vectors[order].T, cmap="viridis", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, label="cosine", shrink=0.8)
    starts = [n for n, name in enumerate(ordered) if n == 0 or name != ordered[n - 1]]
    for start in starts[1:]:
        axes.axhline(start - 0.5, color=ORANGE, linewidth=1.5)
        axes.axvline(start - 0.5, color=ORANGE, linewidth=1.5)
    ends = [*starts[1:], len(ordered)]
    middles = [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
    axes.set_yticks(middles, [ordered[start] for start in starts])
    axes.set_xticks([])
    axes.set_title(title)
    return figure
