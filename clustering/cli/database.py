"""Commands about the database: init, db dsn, db stop, db prune."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clustering.cli.options import HOME, database_options, open_engine
from clustering.cli.output import print_json
from clustering.cli.parameters import Span

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from clustering.settings import Settings


@click.command()
@database_options
def init(settings: Settings, *, as_json: bool) -> None:
    """Create or migrate the schema. Every command does it when needed."""
    with open_engine(settings) as engine:
        version = engine.schema_version
    if as_json:
        print_json({"schema": version})
    else:
        click.echo(f"schema {version} is in place")


@click.group()
def db() -> None:
    """Look after the database and its server."""


@db.command()
@HOME
def dsn(home: Path) -> None:
    """Print the embedded server's DSN; start it, and let it run until `stories db stop`."""
    from clustering.store.database import Database  # noqa: PLC0415 - keeps --help fast
    from clustering.store.embedded import EmbeddedServer  # noqa: PLC0415 - keeps --help fast

    EmbeddedServer(home).keep()
    database = Database(None, home, lambda text: click.echo(text, err=True))
    click.echo(database.dsn)
    database.close()


@db.command()
@HOME
def stop(home: Path) -> None:
    """Stop the embedded server, whoever uses it."""
    from clustering.store.embedded import EmbeddedServer  # noqa: PLC0415 - keeps --help fast

    stopped = EmbeddedServer(home).stop()
    click.echo("stopped" if stopped else "it was not running")


@db.command()
@click.option("--keep", type=Span(), required=True, help="How long vectors are kept, such as 400d.")
@database_options
def prune(settings: Settings, *, keep: timedelta, as_json: bool) -> None:
    """Drop the vectors of old articles, a day's partition at a time. Stories and links stay."""
    with open_engine(settings) as engine:
        done = engine.prune(keep)
    if as_json:
        print_json(done)
    else:
        freed = f"dropped {done.partitions} day partitions, {done.size_bytes / 2**20:.1f} MiB"
        click.echo(f"{freed}; vectors from {done.before} on are kept")
