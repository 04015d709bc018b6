"""Commands that read: list, show, stats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from clustering.cli.options import open_engine, reading_options
from clustering.cli.output import one_line, print_json, print_stories, print_story, print_table
from clustering.cli.parameters import Moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from clustering.settings import Settings

_CELL_CHARS = 60
_BANDS = ("day", "stage", "band", "threshold", "articles", "undone")
_LARGEST = ("story", "articles", "share", "sources", "hours", "headline")
_CLOSEST = ("story", "stage", "article", "score", "threshold", "margin", "title")
_FLAGS = ("stage", "flags", "same", "different")


@click.command(name="list")
@click.option(
    "--since", type=Moment(), help="Only stories that go on after this (24h, 2026-03-10)."
)
@click.option("--until", type=Moment(), help="Only stories that began before this.")
@click.option(
    "--min-size", type=click.IntRange(1), default=2, show_default=True, help="Least articles."
)
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many."
)
@click.option("--sort", metavar="SCORE", help="The highest by a task's score first.")
@reading_options
def list_command(  # noqa: PLR0913 - one keyword for each option
    settings: Settings,
    *,
    since: datetime | None,
    until: datetime | None,
    min_size: int,
    limit: int,
    sort: str | None,
    as_json: bool,
) -> None:
    """List stories, the latest first, or the highest by a score that a task gave."""
    with open_engine(settings) as engine:
        found = engine.summaries(
            since=since, until=until, min_size=min_size, limit=limit, sort=sort
        )
    if as_json:
        print_json(found)
    elif found:
        print_stories(found)
    elif sort is not None:
        click.echo(f"no story has a score {sort}; tasks give them: docs/tasks.md", err=True)
    else:
        click.echo("no stories yet; `stories run SOURCE...` makes some", err=True)


@click.command()
@click.argument("story_id", type=int, metavar="ID")
@reading_options
def show(settings: Settings, *, story_id: int, as_json: bool) -> None:
    """Show a story with its articles and why each is there."""
    with open_engine(settings) as engine:
        story = engine.story(story_id)
    if as_json:
        print_json(story)
        return
    if story.id != story_id:
        click.echo(f"#{story_id} became part of #{story.id}")
    print_story(story)


@click.command()
@click.option("--days", type=click.IntRange(1), default=7, show_default=True, help="How far back.")
@reading_options
def stats(settings: Settings, *, days: int, as_json: bool) -> None:
    """Count links and placements by stage, pass and score, by day.

    A median that moves from day to day tells that a threshold has drifted.
    """
    with open_engine(settings) as engine:
        figures = engine.stats(days=days)
    if as_json:
        print_json(figures)
        return
    click.echo(", ".join(f"{count} {name}" for name, count in figures["totals"].items()))
    _print_days("placements by pass", figures["placements"])
    _print_table("largest stories", _LARGEST, figures["largest"])
    _print_table("closest calls", _CLOSEST, figures["closest"])
    _print_days("duplicates by stage of the cascade", figures["links"])
    _print_table("duplicates by score band (.05 wide)", _BANDS, figures["bands"])
    _print_table("pairs flagged for review", _FLAGS, figures["flags"])


def _print_days(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    _print_table(title, ("day", "stage", "articles", "least", "median", "most"), rows)


def _print_table(title: str, heading: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    click.secho(f"\n{title}", bold=True)
    print_table(heading, [[_cell(row[name]) for name in heading] for row in rows])


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else one_line(str(value))[:_CELL_CHARS]
