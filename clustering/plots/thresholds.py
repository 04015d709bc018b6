"""What a threshold gives: precision and recall over it, and the plateau that it stands on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustering.evaluation.curves import threshold_curve
from clustering.plots.figures import BLUE, GREEN, GREY, ORANGE, panels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from clustering.engine.workbench import PairTable
    from clustering.evaluation.curves import ThresholdCurve
    from clustering.stories.calibration import Calibration
    from clustering.stories.search import Trial


def threshold_curves(pairs: PairTable) -> Figure:
    """Draw precision, recall and F1 of pairs over the threshold, before and after alignment.

    Args:
        pairs: of labelled articles, some of one story.
    """
    figure, axes = panels(2)
    _curves(axes[0], threshold_curve(pairs.raw, pairs.same), "Before alignment")
    _curves(axes[1], threshold_curve(pairs.aligned, pairs.same), "After alignment")
    axes[1].legend(frameon=False)
    return figure


def _curves(axes: Axes, curve: ThresholdCurve, title: str) -> None:
    axes.plot(curve.thresholds, curve.precision, color=BLUE, label="precision")
    axes.plot(curve.thresholds, curve.recall, color=GREEN, linestyle="--", label="recall")
    axes.plot(curve.thresholds, curve.f1, color=ORANGE, linewidth=2.5, label="F1")
    best, f1 = curve.best
    axes.plot([best], [f1], "o", color=ORANGE)
    axes.annotate(f"F1 {f1:.2f} at {best:.2f}", (best, f1), (6, 6), textcoords="offset points")
    axes.set(title=title, xlabel="cosine", ylabel="share of pairs", ylim=(0, 1.08))


def plateau(sweeps: Mapping[str, Sequence[Trial]], chosen: Calibration) -> Figure:
    """Draw B-cubed F1 over one value of the calibration after the other, the rest as chosen.

    The chosen value should stand in the middle of a flat top: a peak is luck.

    Args:
        sweeps: settings tried for each name of a value, as `Workbench.sweep` returns them.
        chosen: the calibration in force.
    """
    figure, axes = panels(len(sweeps), width=4.0)
    scores = [trial.score for trials in sweeps.values() for trial in trials]
    for each, (name, trials) in zip(axes, sweeps.items(), strict=True):
        values = [getattr(trial.calibration, name) for trial in trials]
        each.plot(values, [trial.score for trial in trials], ".-", color=BLUE)
        each.axvline(getattr(chosen, name), color=ORANGE, linestyle="--", label="in force")
        each.axhline(max(scores), color=GREY, linewidth=0.8)
        each.set(title=name, xlabel=_unit(name), ylim=(min(scores) - 0.02, max(scores) + 0.02))
    axes[0].set_ylabel("B-cubed F1")
    axes[-1].legend(frameon=False)
    return figure


def _unit(name: str) -> str:
    if name.endswith("_hours"):
        return "hours"
    return "articles" if name in {"centroid_members", "neighbours"} else "cosine"
