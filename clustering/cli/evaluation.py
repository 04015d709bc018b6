"""Commands that measure: replay, evaluate."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering.cli.options import model_options
from clustering.cli.output import print_json, print_report
from clustering.cli.parameters import Span

if TYPE_CHECKING:
    from clustering.settings import Settings

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(name="replay")
@click.argument("file", type=_FILE)
@click.option(
    "--every", type=Span(), default=timedelta(hours=1), help="Length of a step.  [default: 1h]"
)
@click.option(
    "--assignments",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the story of every row here, as JSON Lines.",
)
@model_options
def replay_command(
    settings: Settings, *, file: Path, every: timedelta, assignments: Path | None, as_json: bool
) -> int:
    """Play a dated corpus through the engine, as if its articles arrived step by step.

    FILE is JSON Lines with published_at in each row. It works in a scratch database.
    """
    from clustering.cli.progress import Bars  # noqa: PLC0415 - keeps --help fast
    from clustering.engine.corpus import replay, write_assignments  # noqa: PLC0415 - keeps --help fast

    replayed = replay(file, settings, every, Bars())
    if assignments is not None:
        write_assignments(replayed, assignments)
    return print_report(replayed.report, as_json=as_json)


@click.command(name="evaluate")
@click.argument("gold", type=_FILE)
@click.argument("output", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def evaluate_command(*, gold: Path, output: Path, as_json: bool) -> None:
    """Score assignments against gold stories: B-cubed, pairwise, cross-lingual, by language.

    GOLD is JSON Lines with id, story and language; OUTPUT what `replay --assignments` wrote. Where
    GOLD has titles and times, the flags that like titles raise are scored too.
    """
    from clustering.engine.flags import flags_report, format_flags  # noqa: PLC0415 - keeps --help fast
    from clustering.evaluation import evaluate, format_evaluation  # noqa: PLC0415 - keeps --help fast

    evaluation, flags = evaluate(gold, output), flags_report(gold)
    if as_json:
        print_json(evaluation.to_dict() | ({"title_flags": flags.to_dict()} if flags else {}))
        return
    click.echo(format_evaluation(evaluation))
    if flags:
        click.echo("\n" + format_flags(flags))
