"""Commands about feeds: feeds list, feeds set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clustering.cli.options import database_options, open_engine, reading_options
from clustering.cli.output import one_line, print_json, print_table
from clustering.cli.parameters import Span

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from clustering.records import FeedSettings
    from clustering.settings import Settings


@click.group()
def feeds() -> None:
    """Look at the settings of feeds and change them."""


@feeds.command(name="list")
@reading_options
def list_feeds(settings: Settings, *, as_json: bool) -> None:
    """List feeds with their settings."""
    with open_engine(settings) as engine:
        found = engine.feeds()
    if as_json:
        print_json([feed_row(feed) for feed in found])
    elif found:
        _print_feeds(found)
    else:
        click.echo("no feeds yet; `stories ingest SOURCE...` reads some", err=True)


@feeds.command(name="set")
@click.argument("address")
@click.option(
    "--identity-param",
    "identity_params",
    multiple=True,
    metavar="NAME",
    help="Query parameter that names an article on the feed's site; several take several. "
    "They replace those set before.",
)
@click.option("--no-identity-params", is_flag=True, help="Set none.")
@click.option(
    "--duplicate-window",
    type=Span(),
    help="Time within which two articles of like text are one (48h, 14d).",
)
@click.option(
    "--kind",
    type=click.Choice(["normal", "live"]),
    help="live: an entry is one address whose text changes, whatever guid it has.",
)
@click.option("--new", is_flag=True, help="The feed was not read yet; add it.")
@database_options
def set_feed(  # noqa: PLR0913 - one keyword for each option
    settings: Settings,
    *,
    address: str,
    identity_params: tuple[str, ...],
    no_identity_params: bool,
    duplicate_window: timedelta | None,
    kind: str | None,
    new: bool,
    as_json: bool,
) -> None:
    """Change settings of the feed at ADDRESS (or of that name); what is not named stays."""
    if identity_params and no_identity_params:
        raise click.UsageError("--identity-param and --no-identity-params contradict each other")
    names = identity_params if identity_params or no_identity_params else None
    with open_engine(settings) as engine:
        feed = engine.set_feed(
            address,
            identity_params=names,
            duplicate_window=duplicate_window,
            kind=kind,
            new=new,
        )
    if as_json:
        print_json(feed_row(feed))
    else:
        _print_feeds([feed])


def feed_row(feed: FeedSettings) -> dict[str, object]:
    """Return settings as `--json` prints them; the window in hours."""
    return {
        "address": feed.address,
        "title": feed.title,
        "language": feed.language,
        "kind": feed.kind,
        "duplicate_window_hours": feed.duplicate_window.total_seconds() / 3600,
        "identity_params": list(feed.identity_params),
    }


def _print_feeds(found: Iterable[FeedSettings]) -> None:
    rows = [
        (
            feed.kind,
            f"{feed.duplicate_window.total_seconds() / 3600:g} h",
            " ".join(feed.identity_params) or "-",
            one_line(feed.address),
        )
        for feed in found
    ]
    print_table(("kind", "window", "identity parameters", "feed"), rows)
