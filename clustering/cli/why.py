"""The command that asks for reasons: why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clustering.cli.options import model_reading_options, open_engine
from clustering.cli.output import one_line, print_json, print_table

if TYPE_CHECKING:
    from clustering.settings import Settings
    from clustering.stories.why import WhyStory


@click.command()
@click.argument("article_id", type=int, metavar="ARTICLE")
@click.argument("story_id", type=int, required=False, metavar="[STORY]")
@model_reading_options
def why(settings: Settings, *, article_id: int, story_id: int | None, as_json: bool) -> None:
    """Tell why an article is in its story and in no other.

    The stories near it are scored anew, as they are now; STORY is scored besides.
    """
    with open_engine(settings) as engine:
        found = engine.why(article_id, story_id)
    if as_json:
        print_json(found)
        return
    click.secho(f"article {found.article_id}  {one_line(found.title)}", bold=True)
    click.echo(f"{found.event_time:%Y-%m-%d %H:%M} UTC, {found.placement}")
    heading = ("", "story", "cosine", "time", "language", "cohesion", "score", "needs", "reason")
    if found.candidates:
        print_table(heading, map(_row, found.candidates))


def _row(story: WhyStory) -> tuple[str, ...]:
    return (
        "*" if story.own else "",
        f"#{story.story_id}",
        f"{story.parts.similarity:.3f}",
        *(f"{-penalty:+.3f}" for penalty in story.parts[1:]),
        f"{story.score:.3f}",
        f"{story.threshold:.3f}",
        f"{story.reason} ({one_line(story.headline)})",
    )
