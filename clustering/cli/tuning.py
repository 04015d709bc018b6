"""The command that looks for thresholds: tune."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering.cli.options import model_options
from clustering.cli.output import print_json, print_table
from clustering.cli.parameters import Span

if TYPE_CHECKING:
    from clustering.engine.tuning import PairScore, Score, Tuning
    from clustering.settings import Settings

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("gold", type=_FILE, nargs=-1, metavar="[GOLD]...")
@click.option(
    "--pairs", type=_FILE, multiple=True, help="Labelled pairs that count as much as a GOLD file."
)
@click.option(
    "--judgements",
    is_flag=True,
    help="Also count the pairs decided in the database's review queue, as much as a GOLD file.",
)
@click.option(
    "--lede-chars",
    type=click.IntRange(0),
    multiple=True,
    help="Encode so many characters of body after the title; several are compared.",
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
    judgements: bool,
    lede_chars: tuple[int, ...],
    out: Path | None,
    vectors: Path | None,
    rounds: int,
    trials: int,
    every: timedelta,
    as_json: bool,
) -> None:
    """Look for the thresholds that serve labelled corpora, and labelled pairs, best.

    GOLD is JSON Lines with id, story and published_at in each row. Settings are tried on the
    earlier part of each file (--trials of them, --rounds times, each round nearer to the best), and
    the middle of the plateau is scored on the later part. Of pairs every other one is kept back.
    """
    from clustering.cli.progress import Bars  # noqa: PLC0415 - keeps --help fast
    from clustering.engine.tuning import (  # noqa: PLC0415 - keeps --help fast
        Labels,
        calibration_text,
        tune,
        write_calibration,
    )
    from clustering.stories.search import Effort  # noqa: PLC0415 - keeps --help fast

    labels = Labels(gold, pairs, judgements, lede_chars, vectors)
    tuning = tune(labels, settings, every, Bars(), Effort(rounds, trials))
    text = calibration_text(tuning)
    if out is not None:
        write_calibration(text, out)
    if as_json:
        print_json(tuning.to_dict())
        return
    _print_scores(tuning)
    if out is None:
        click.echo("\n" + text, nl=False)
    else:
        click.echo(f"\nwritten to {out}; use it with --model {tuning.model} --calibration {out}")


def _print_scores(tuning: Tuning) -> None:
    if tuning.after.corpora:
        heading = ("later part of", "B-cubed before", "after", "95 %", "pairwise")
        print_table(heading, map(_corpus_row, tuning.before.corpora, tuning.after.corpora))
    if tuning.after.pairs:
        print_table(
            ("pairs kept back of", "right before", "after"),
            map(_pairs_row, tuning.before.pairs, tuning.after.pairs),
        )
    if len(tuning.texts) > 1:
        rows = ((name, f"{score:.3f}") for name, score in tuning.texts.items())
        print_table(("text of", "around its plateau"), rows)
    around = tuning.plateau
    click.echo(
        f"\nwhat it saw: {around.score:.3f}, in its surroundings {around.surrounding:.3f} "
        f"({around.least:.3f} at least); {tuning.trials} settings tried"
    )


def _corpus_row(before: Score, after: Score) -> tuple[str, ...]:
    return (
        after.corpus,
        f"{before.bcubed_f1:.3f}",
        f"{after.bcubed_f1:.3f}",
        f"{after.interval.low:.3f} to {after.interval.high:.3f}",
        f"{after.pairwise_f1:.3f}",
    )


def _pairs_row(before: PairScore, after: PairScore) -> tuple[str, ...]:
    return after.pairs, f"{before.accuracy:.3f}", f"{after.accuracy:.3f}"
