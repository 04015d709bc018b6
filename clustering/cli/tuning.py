"""The command that looks for thresholds: tune."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering.cli.options import model_options
from clustering.cli.output import print_json, print_table
from clustering.cli.parameters import Span
from clustering.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from clustering.engine.tuning import Tuning
    from clustering.settings import Settings

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("gold", type=_FILE, nargs=-1, required=True, metavar="GOLD...")
@click.option(
    "--pairs", type=_FILE, multiple=True, help="Labelled pairs that count as much as a GOLD file."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the calibration here; name it with --calibration in a run.",
)
@click.option(
    "--vectors",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to keep vectors in, so that the next search encodes nothing.",
)
@click.option("--rounds", type=click.IntRange(1), default=8, show_default=True)
@click.option("--trials", type=click.IntRange(2), default=40, show_default=True)
@click.option(
    "--every", type=Span(), default=timedelta(hours=1), help="Length of a step.  [default: 1h]"
)
@model_options
def tune(  # noqa: PLR0913 - one keyword for each option
    settings: Settings,
    *,
    gold: tuple[Path, ...],
    pairs: tuple[Path, ...],
    out: Path | None,
    vectors: Path | None,
    rounds: int,
    trials: int,
    every: timedelta,
    as_json: bool,
) -> None:
    """Look for the thresholds that serve labelled corpora best.

    GOLD is JSON Lines with id, story and published_at in each row. Settings are tried on the
    earlier part of each file (--trials of them, --rounds times, each round nearer to the best), and
    the middle of the plateau is scored on the later part.
    """
    from clustering.cli.progress import Bars  # noqa: PLC0415 - keeps --help fast
    from clustering.engine.tuning import (  # noqa: PLC0415 - keeps --help fast
        Effort,
        Labels,
        calibration_text,
        tune,
        write_calibration,
    )

    labels = Labels(gold, pairs, vectors)
    tuning = tune(labels, settings, every, Bars(), Effort(rounds, trials))
    text = calibration_text(tuning, settings.model or DEFAULT_MODEL)
    if out is not None:
        write_calibration(text, out)
    if as_json:
        print_json(tuning.to_dict())
        return
    _print_scores(tuning)
    if out is None:
        click.echo("\n" + text, nl=False)
    else:
        click.echo(f"\nwritten to {out}; use it with --calibration {out}")


def _print_scores(tuning: Tuning) -> None:
    rows = [
        (
            after.corpus,
            f"{before.bcubed_f1:.3f}",
            f"{after.bcubed_f1:.3f}",
            f"{after.interval.low:.3f} to {after.interval.high:.3f}",
            f"{after.pairwise_f1:.3f}",
        )
        for before, after in zip(tuning.before, tuning.after, strict=True)
    ]
    print_table(("later part of", "B-cubed before", "after", "95 %", "pairwise"), rows)
    around = tuning.plateau
    click.echo(
        f"\nearlier parts: {around.score:.3f}, in its surroundings {around.surrounding:.3f} "
        f"({around.least:.3f} at least); {tuning.trials} settings tried"
    )
