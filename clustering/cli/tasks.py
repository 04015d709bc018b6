"""Commands for what comes after the stories: tasks, tail, export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clustering.cli.options import database_options, open_engine, reading_options
from clustering.cli.output import one_line, print_json, print_table
from clustering.cli.parameters import Moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clustering.settings import Settings
    from clustering.tasks.leases import Task

_STATES = ("waiting", "leased", "done", "failed")
_FORMATS = ("jsonl", "parquet")


@click.group()
def tasks() -> None:
    """Look after the tasks that other programs do for stories."""


@tasks.command(name="list")
@click.argument("name", required=False)
@click.option("--state", type=click.Choice(_STATES), help="Only tasks in this state.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many."
)
@reading_options
def list_tasks(
    settings: Settings, *, name: str | None, state: str | None, limit: int, as_json: bool
) -> None:
    """List tasks, all or those called NAME: state, failures, when they are due again."""
    with open_engine(settings) as engine:
        found = engine.tasks(name, state=state, limit=limit)
    if as_json:
        print_json(found)
    elif found:
        _print_tasks(found)
    else:
        click.echo("no such tasks; `Engine.pending` hands them out", err=True)


@tasks.command()
@click.argument("name")
@click.argument("story_ids", nargs=-1, type=int, metavar="[ID]...")
@database_options
def retry(settings: Settings, *, name: str, story_ids: tuple[int, ...], as_json: bool) -> None:
    """Let failed tasks called NAME be tried again at once, all or those of some stories."""
    with open_engine(settings) as engine:
        try:
            count = engine.retry(name, story_ids or None)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
    if as_json:
        print_json({"retried": count})
    else:
        click.echo(f"{count} to be tried again")


@click.command()
@click.option("--after", type=click.IntRange(0), help="Begin after this change; 0 for all stories.")
@click.option(
    "--follow/--no-follow", default=True, help="Wait for more, or end with what is there."
)
@click.option(
    "--poll-seconds",
    type=click.FloatRange(0.1),
    default=5.0,
    show_default=True,
    help="How often to ask behind a pooler, where the server cannot tell.",
)
@reading_options
def tail(
    settings: Settings, *, after: int | None, follow: bool, poll_seconds: float, as_json: bool
) -> None:
    """Print new, changed and merged stories as JSON Lines, as they come.

    Each has the number of its change: --after it, nothing is missed. Without --after, only what
    comes from now on is printed.
    """
    del as_json  # the output is JSON with and without it
    with open_engine(settings) as engine:
        found = (
            engine.subscribe(after, poll_seconds=poll_seconds, warn=_note)
            if follow
            else engine.changes(after or 0)
        )
        for change in found:
            print_json(change)


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File to write."
)
@click.option(
    "--format", "file_format", type=click.Choice(_FORMATS), default="jsonl", show_default=True
)
@click.option("--since", type=Moment(), help="Only stories that go on after this.")
@click.option("--until", type=Moment(), help="Only stories that began before this.")
@click.option(
    "--min-size", type=click.IntRange(1), default=2, show_default=True, help="Least articles."
)
@reading_options
def export(  # noqa: PLR0913 - one keyword for each option
    settings: Settings,
    *,
    out: Path,
    file_format: str,
    since: datetime | None,
    until: datetime | None,
    min_size: int,
    as_json: bool,
) -> None:
    """Write stories with their articles, links and scores to a file."""
    with open_engine(settings) as engine:
        count = engine.export(
            out, file_format=file_format, since=since, until=until, min_size=min_size
        )
    if as_json:
        print_json({"stories": count})
    else:
        click.echo(f"{count} stories", err=True)


def _note(text: str) -> None:
    click.echo(f"stories: {text}", err=True)


def _print_tasks(found: Sequence[Task]) -> None:
    heading = ("task", "story", "state", "failures", "due (UTC)", "error")
    rows = [
        (
            task.name,
            f"#{task.story_id}",
            task.state,
            str(task.attempts),
            f"{task.due_at:%Y-%m-%d %H:%M}" if task.state in ("waiting", "leased") else "-",
            one_line(task.error or ""),
        )
        for task in found
    ]
    print_table(heading, rows)
