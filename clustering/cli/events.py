"""The command that shows events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clustering.cli.options import open_engine, reading_options
from clustering.cli.output import one_line, print_json, print_table
from clustering.cli.parameters import Moment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clustering.events.reading import Event
    from clustering.settings import Settings


@click.command()
@click.argument("event_id", type=int, required=False, metavar="[ID]")
@click.option("--since", type=Moment(), help="Only events that go on after this (7d, 2026-03-10).")
@click.option("--until", type=Moment(), help="Only events that began before this.")
@click.option(
    "--min-stories", type=click.IntRange(1), default=2, show_default=True, help="Least stories."
)
@click.option("--open", "only_open", is_flag=True, help="Only those that a story can still join.")
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many."
)
@reading_options
def events(  # noqa: PLR0913 - one keyword for each option
    settings: Settings,
    *,
    event_id: int | None,
    since: datetime | None,
    until: datetime | None,
    min_stories: int,
    only_open: bool,
    limit: int,
    as_json: bool,
) -> None:
    """List events, the latest first, or show the timeline of one.

    An event is one affair that runs over days: a storm from forecast to aftermath, a trial.
    """
    with open_engine(settings) as engine:
        if event_id is not None:
            found = [engine.event(event_id)]
        else:
            found = engine.events(
                since=since, until=until, min_stories=min_stories, only_open=only_open, limit=limit
            )
    if as_json:
        print_json(found if event_id is None else found[0])
    elif event_id is not None:
        _print_event(found[0], event_id)
    elif found:
        _print_events(found)
    else:
        click.echo("no events yet; they are made of stories, which `stories run` makes", err=True)


def _print_events(found: Sequence[Event]) -> None:
    rows = [
        (
            f"#{event.id}",
            str(event.stories),
            str(event.articles),
            f"{event.first_time:%Y-%m-%d %H:%M}",
            f"{event.latest_time:%Y-%m-%d %H:%M}",
            "open" if event.open else "closed",
            one_line(event.headline),
        )
        for event in found
    ]
    print_table(("event", "stories", "articles", "first (UTC)", "latest", "", "headline"), rows)


def _print_event(event: Event, asked_id: int) -> None:
    if event.id != asked_id:
        click.echo(f"#{asked_id} became part of #{event.id}")
    click.secho(f"#{event.id}  {one_line(event.headline)}", bold=True)
    click.echo(
        f"{event.stories} stories, {event.articles} articles, {', '.join(event.languages)}, "
        f"{event.first_time:%Y-%m-%d %H:%M} to {event.latest_time:%Y-%m-%d %H:%M} UTC, "
        f"{'open' if event.open else 'closed'}"
    )
    rows = [
        (
            f"{story.first_time:%Y-%m-%d %H:%M}",
            f"#{story.id}",
            str(story.size),
            " ".join(story.languages[:4]),
            f"{story.score:.3f} of {story.threshold:.3f}",
            f"#{story.nearest_id}",
            one_line(story.headline),
        )
        for story in event.timeline
    ]
    print_table(
        ("first (UTC)", "story", "articles", "languages", "score", "nearest", "headline"), rows
    )
