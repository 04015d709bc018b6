"""Commands that do the work: ingest, encode, cluster, run, demo."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from clustering.cli.options import database_options, model_options, open_engine
from clustering.cli.output import print_json, print_report, print_stories
from clustering.cli.parameters import Moment, Span

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from clustering.settings import Settings

_SOURCES = click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")


@click.command()
@_SOURCES
@database_options
def ingest(settings: Settings, *, sources: tuple[str, ...], as_json: bool) -> int:
    """Read articles and fold duplicates.

    SOURCE is a .jsonl or .jsonl.gz file, a feed or OPML file, an http(s) address of one, or - for
    JSON Lines on standard input.
    """
    with open_engine(settings) as engine:
        return print_report(engine.ingest_sources(sources), as_json=as_json)


@click.command()
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes on this machine, each on its share of the cores.",
)
@click.option("--poll", type=Span(), help="Wait so long for new articles instead of ending (10s).")
@model_options
def encode(settings: Settings, *, workers: int, poll: timedelta | None, as_json: bool) -> None:
    """Encode what waits, for the next run to find it done.

    Works beside runs and beside itself, on any number of machines; the stories are the same.
    """
    with open_engine(settings) as engine:
        done = engine.encode(workers=workers, poll=poll)
    if as_json:
        print_json({"encoded": done})
    else:
        click.echo(f"encoded {done} articles")


@click.command()
@click.option("--as-of", type=Moment(), help="Leave articles of later times for another run.")
@model_options
def cluster(settings: Settings, *, as_of: datetime | None, as_json: bool) -> int:
    """Encode what is new and put it into stories."""
    with open_engine(settings) as engine:
        return print_report(engine.cluster(as_of=as_of), as_json=as_json)


@click.command()
@_SOURCES
@model_options
def run(settings: Settings, *, sources: tuple[str, ...], as_json: bool) -> int:
    """Ingest, then cluster: the hourly job."""
    with open_engine(settings) as engine:
        return print_report(engine.run(sources), as_json=as_json)


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also show stories of two articles.")
@model_options
def demo(settings: Settings, *, everything: bool, as_json: bool) -> int:
    """Cluster a sample day in many languages, from nothing to stories on screen.

    Works in a database of its own, named stories_demo, which is made anew each time.
    """
    from clustering.engine.demo import (  # noqa: PLC0415 - keeps --help fast
        DEMO_DATABASE,
        fresh_database,
        sample_day,
    )

    with ExitStack() as opened:
        dsn = opened.enter_context(fresh_database(settings.database, settings.home))
        engine = opened.enter_context(open_engine(replace(settings, database=dsn)))
        report = engine.play(sample_day())
        status = print_report(report, as_json=as_json)
        if not as_json:
            click.echo()
            print_stories(engine.summaries(min_size=2 if everything else 3))
            name = DEMO_DATABASE if settings.database is None else dsn
            click.echo(
                f"\nWhy is an article there?  stories show ID --database {shlex.quote(name)}"
            )
    return status
