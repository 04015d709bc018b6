"""Commands that measure: replay, evaluate."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering.cli.options import model_options
from clustering.cli.output import one_line, print_json, print_refusals, print_report, print_table
from clustering.cli.parameters import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clustering.engine.comparison import Comparison, SystemScore
    from clustering.settings import Settings

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command(name="replay")
@click.argument("files", type=_FILE, nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--every", type=Span(), default=timedelta(hours=1), help="Length of a step.  [default: 1h]"
)
@click.option(
    "--assignments",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the story of every row here, as JSON Lines.",
)
@click.option(
    "--baseline",
    is_flag=True,
    help="Also run simpler systems, and print how the engine compares; FILE must be labelled.",
)
@click.option(
    "--vectors",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to keep vectors in, so that the next replay encodes nothing.",
)
@click.option(
    "--event-link",
    "event_links",
    type=click.FloatRange(-1, 1),
    multiple=True,
    help="Link events at this threshold too, for a curve in `evaluate`; may be repeated.",
)
@model_options
def replay_command(  # noqa: PLR0913 - one keyword for each option
    settings: Settings,
    *,
    files: tuple[Path, ...],
    every: timedelta,
    assignments: Path | None,
    baseline: bool,
    vectors: Path | None,
    event_links: tuple[float, ...],
    as_json: bool,
) -> int:
    """Play a dated corpus through the engine, as if its articles arrived step by step.

    FILE is JSON Lines with published_at in each row. It works in a scratch database. With
    --baseline there may be several, and each row names its story; baselines get the one threshold
    that is best for all of them.
    """
    from clustering.cli.progress import Bars  # noqa: PLC0415 - keeps --help fast
    from clustering.engine.corpus import replay, write_assignments  # noqa: PLC0415 - keeps --help fast

    if baseline:
        if assignments is not None:
            raise click.UsageError("--assignments goes with a replay without --baseline")
        if event_links:
            raise click.UsageError("--event-link goes with a replay without --baseline")
        return _compare(files, settings, every, vectors, as_json=as_json)
    if len(files) > 1:
        raise click.UsageError("several files can be compared with --baseline, and replayed singly")
    replayed = replay(files[0], settings, every, Bars(), vectors, event_links=event_links)
    if assignments is not None:
        write_assignments(replayed, assignments)
    return print_report(replayed.report, as_json=as_json)


@click.command(name="evaluate")
@click.argument("gold", type=_FILE)
@click.argument("output", type=_FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def evaluate_command(*, gold: Path, output: Path, as_json: bool) -> None:
    """Score assignments against gold stories: B-cubed, pairwise, cross-lingual, by language.

    GOLD is JSON Lines with id, story, language and published_at; OUTPUT what `replay --assignments`
    wrote. Where GOLD has titles and times, the flags that like titles raise are scored too.
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


def _compare(
    files: Sequence[Path],
    settings: Settings,
    every: timedelta,
    vectors: Path | None,
    *,
    as_json: bool,
) -> int:
    from clustering.cli.progress import Bars  # noqa: PLC0415 - keeps --help fast
    from clustering.engine.comparison import compare  # noqa: PLC0415 - keeps --help fast

    comparison = compare(files, settings, every, Bars(), vectors)
    if as_json:
        print_json(comparison.to_dict())
    else:
        _print_comparison(comparison)
    return print_refusals(comparison.refusals)


def _print_comparison(comparison: Comparison) -> None:
    click.secho("B-cubed F1 / pairwise F1", bold=True)
    heading = ("system", "space", "cosine", *map(one_line, comparison.names), "mean")
    print_table(heading, map(_system_row, comparison.systems))
    gains = {name: f"{100 * gain:+.1f}" for name, gain in comparison.gains.items()}
    click.echo(
        f"\nMean B-cubed of the engine, in points: {gains['as_published']} over the published "
        f"passes as published,\n{gains['best_raw']} over them at their best cosine, "
        f"{gains['best_aligned']} over the better baseline in the aligned space."
    )


def _system_row(system: SystemScore) -> tuple[str, ...]:
    cosine = "" if system.threshold is None else f"{system.threshold:.4f}".rstrip("0")
    return (
        system.system,
        system.space,
        f"{cosine} best" if system.chosen else cosine,
        *(f"{found.bcubed.f1:.3f} / {found.pairwise.f1:.3f}" for found in system.evaluations),
        f"{system.mean_bcubed:.3f} / {system.mean_pairwise:.3f}",
    )
