"""Entry point of `stories`: the group of commands and what an error becomes.

Exit status: 0 done, 1 failed, 2 usage, 3 done but some input was refused, 4 another run holds the lock.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import click

from clustering import __version__
from clustering.cli.database import db, init
from clustering.cli.duplicates import duplicates, review
from clustering.cli.editing import merge, move, split, undo
from clustering.cli.evaluation import evaluate_command, replay_command
from clustering.cli.events import events
from clustering.cli.feeds import feeds
from clustering.cli.pipeline import cluster, demo, encode, ingest, run
from clustering.cli.spaces import space
from clustering.cli.stories import list_command, show, stats
from clustering.cli.tasks import export, tail, tasks
from clustering.cli.tuning import tune
from clustering.cli.why import why
from clustering.errors import StoriesError

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """Lists commands in the order in which one meets them, not by the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


@click.group(cls=_Commands, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="stories")
def stories() -> None:
    """Turn a stream of news articles in many languages into stories.

    With no --database and no STORIES_DATABASE, an embedded PostgreSQL keeps everything under
    STORIES_HOME (default: the user's data folder).
    """


for _command in (
    demo,
    run,
    ingest,
    encode,
    cluster,
    list_command,
    show,
    why,
    move,
    split,
    merge,
    undo,
    events,
    stats,
    replay_command,
    evaluate_command,
    tune,
    init,
    db,
    feeds,
    duplicates,
    review,
    tasks,
    tail,
    export,
    space,
):
    stories.add_command(_command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning  # type: ignore[assignment] # fewer of its arguments
        sys.exit(_status(arguments))


def _show_warning(message: Warning | str, *_: object) -> None:
    """Show a warning as one line, without the place in the code that it came from."""
    click.echo(f"stories: {message}", err=True)


def _status(arguments: list[str] | None) -> int:
    try:
        result: Any = stories.main(args=arguments, prog_name="stories", standalone_mode=False)
    except StoriesError as error:
        click.echo(f"stories: {error}", err=True)
        return error.exit_status
    except click.exceptions.Abort:
        click.echo("stories: stopped", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return result if isinstance(result, int) else 0
