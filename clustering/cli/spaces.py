"""Commands about spaces: space list, fit, activate, backfill, drop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clustering.cli.options import database_options, model_options, open_engine, reading_options
from clustering.cli.output import print_json, print_report, print_table
from clustering.cli.parameters import Moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clustering.engine.spaces import SpaceState
    from clustering.settings import Settings


@click.group()
def space() -> None:
    """Look after the spaces that articles are encoded in.

    A space is a model with what is taken out of its vectors. One serves; others can be filled
    beside it and take its place, with the ids of all stories kept.
    """


@space.command(name="list")
@reading_options
def list_spaces(settings: Settings, *, as_json: bool) -> None:
    """List the spaces of the database, and how full each is."""
    with open_engine(settings) as engine:
        found = engine.spaces()
    if as_json:
        print_json(found)
    elif found:
        _print_spaces(found)
    else:
        click.echo("no space yet; the first run makes one", err=True)


@space.command()
@click.argument("name", required=False)
@database_options
def fit(settings: Settings, *, name: str | None, as_json: bool) -> None:
    """Learn the domain mean from your own articles, as a new space. Nothing is encoded.

    NAME is the space to learn from; without it the active one. Takes at least 2,000 articles.
    """
    with open_engine(settings) as engine:
        _print_space(engine.fit_space(name), as_json=as_json)


@space.command()
@click.argument("name")
@click.option("--since", type=Moment(), help="Leave earlier articles out (30d, 2026-03-10).")
@database_options
def backfill(settings: Settings, *, name: str, since: datetime | None, as_json: bool) -> None:
    """Fill a space with the articles that are in another, the latest first.

    NAME is a space, or a model (card, hub name, folder), whose space is made where missing. Hourly
    runs go on beside it. What was killed goes on where it stopped when it is called again.
    """
    with open_engine(settings) as engine:
        _print_space(engine.backfill_space(name, since=since), as_json=as_json)


@space.command()
@click.argument("name")
@model_options
def activate(settings: Settings, *, name: str, as_json: bool) -> int:
    """Let a full space serve from now on. Stories keep their ids."""
    with open_engine(settings) as engine:
        return print_report(engine.activate_space(name), as_json=as_json)


@space.command()
@click.argument("name")
@database_options
def drop(settings: Settings, *, name: str, as_json: bool) -> None:
    """Drop a space that does not serve, and free what its vectors take. Stories stay."""
    with open_engine(settings) as engine:
        engine.drop_space(name)
    if as_json:
        print_json({"dropped": name})
    else:
        click.echo(f"dropped {name}")


def _print_space(state: SpaceState, *, as_json: bool) -> None:
    if as_json:
        print_json(state)
        return
    _print_spaces([state])
    if not state.active:
        missing = f"lacks {state.live_missing} articles that can still be matched; backfill again"
        ready = f"is full; let it serve with `stories space activate {state.name}`"
        click.echo(f"{state.name} {missing if state.live_missing else ready}")


def _print_spaces(states: Sequence[SpaceState]) -> None:
    heading = ("", "space", "model", "articles", "live", "MiB", "mean")
    print_table(heading, [_row(state) for state in states])


def _row(state: SpaceState) -> tuple[str, ...]:
    mean = f"fitted {state.fit}" if state.fit else f"learned, version {state.mean_version}"
    return (
        "*" if state.active else "",
        state.name,
        state.model,
        str(state.articles),
        f"{state.live_wanted - state.live_missing} of {state.live_wanted}",
        f"{state.size_bytes / 2**20:.1f}",
        mean,
    )
