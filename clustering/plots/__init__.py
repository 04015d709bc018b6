"""Charts of similarities, thresholds and stories (extra `notebook`). Each takes data and returns a Figure.

    from clustering import plots

    plots.similarity_histograms(bench.pairs()).savefig("similarities.png")

Figures belong to no display: a notebook shows the one that a cell ends with, a script saves it.
Colours are those of Okabe and Ito (2008), which people with any colour vision can tell apart.
"""

from clustering.plots.similarities import language_pairs, similarity_histograms, similarity_matrix
from clustering.plots.stories import day_map, story_sizes
from clustering.plots.thresholds import plateau, threshold_curves

__all__ = [
    "day_map",
    "language_pairs",
    "plateau",
    "similarity_histograms",
    "similarity_matrix",
    "story_sizes",
    "threshold_curves",
]
