"""Commands that correct what runs decided: move, split, merge, undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clustering.cli.options import BY, database_options, open_engine
from clustering.cli.output import one_line, print_json

if TYPE_CHECKING:
    from clustering.engine.editing import Edit, Undoing
    from clustering.settings import Settings

_NAMES = {
    "placements": "placement",
    "merges": "merge",
    "links": "duplicate link",
    "event_links": "event link",
    "event_merges": "event merge",
    "judgements": "judgement",
}


@click.command()
@click.argument("article_id", type=int, metavar="ARTICLE")
@click.argument("story_id", type=int, metavar="STORY")
@BY
@database_options
def move(settings: Settings, *, article_id: int, story_id: int, by: str, as_json: bool) -> None:
    """Put an article into a story, where it stays whatever later runs find."""
    with open_engine(settings) as engine:
        edit = engine.move(article_id, story_id, by=by)
    _print_edit(edit, f"[{article_id}] is in #{edit.story_id}", as_json=as_json)


@click.command()
@click.argument("story_id", type=int, metavar="STORY")
@click.argument("article_ids", type=int, nargs=-1, required=True, metavar="ARTICLE...")
@BY
@database_options
def split(
    settings: Settings, *, story_id: int, article_ids: tuple[int, ...], by: str, as_json: bool
) -> None:
    """Make a story of some articles of another; no run brings the two together again."""
    with open_engine(settings) as engine:
        edit = engine.split(story_id, article_ids, by=by)
    _print_edit(edit, f"#{edit.story_id} parted from #{story_id}", as_json=as_json)


@click.command()
@click.argument("survivor_id", type=int, metavar="STORY")
@click.argument("absorbed_id", type=int, metavar="STORY")
@BY
@database_options
def merge(
    settings: Settings, *, survivor_id: int, absorbed_id: int, by: str, as_json: bool
) -> None:
    """Let the second story become part of the first."""
    with open_engine(settings) as engine:
        edit = engine.merge(survivor_id, absorbed_id, by=by)
    _print_edit(edit, f"#{absorbed_id} became part of #{edit.story_id}", as_json=as_json)


@click.command()
@click.argument("run_id", type=int, metavar="RUN")
@click.option("--cascade", is_flag=True, help="Take back too what later runs built on it.")
@BY
@database_options
def undo(settings: Settings, *, run_id: int, cascade: bool, by: str, as_json: bool) -> None:
    """Take back everything that a run decided, as if it had not been.

    Articles stay, and wait for the next run where nothing else was decided of them before. A run that
    later ones built on is refused, and these are named, unless --cascade is given.
    """
    with open_engine(settings) as engine:
        undone = engine.undo(run_id, cascade=cascade, by=by)
    if as_json:
        print_json(undone)
    else:
        _print_undone(undone)


def _print_edit(edit: Edit, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(edit)
    else:
        click.echo(f"run {edit.run_id}: {text}, says {one_line(edit.by)}")


def _print_undone(undone: Undoing) -> None:
    counts = undone.counts.items()
    parts = [f"{count} {_NAMES[name]}{'s' if count > 1 else ''}" for name, count in counts]
    click.echo(f"run {undone.run_id}: run {undone.undone} undone, {', '.join(parts) or 'nothing'}")
    if undone.cascaded:
        click.echo(f"and what was built on it by {', '.join(map(str, undone.cascaded))}")
