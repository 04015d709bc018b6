"""What commands print: text for people, JSON for programs. Text from feeds is never trusted."""

from __future__ import annotations

import dataclasses
import json
import shutil
import unicodedata
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clustering.engine.runs import RunReport
    from clustering.records import Refusal
    from clustering.stories.reading import Merged, Story, StoryArticle, StorySummary

_MOST_REFUSALS_SHOWN = 20
_OUTCOMES = ("new", "changed", "unchanged", "duplicate", "rejected")
_DECISIONS = (
    "encoded",
    "matched",
    "discovered",
    "attached",
    "unplaced",
    "stories",
    "merges",
    "events",
)
_PASSES = {
    "match": "pass 1 match",
    "discover": "pass 2 discover",
    "attach": "pass 1 attached, without a part in the centroid",
}


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(value, ensure_ascii=False, default=_plain))


def print_report(report: RunReport, *, as_json: bool) -> int:
    """Print what a run did; refusals go to stderr. Returns the exit status: 3 where input was refused."""
    if as_json:
        print_json(report.to_dict())
    else:
        click.echo(_report_line(report))
    return print_refusals(report.refusals)


def print_refusals(refusals: Sequence[Refusal]) -> int:
    """Print what was refused on stderr. Returns the exit status: 3 where anything was."""
    for refusal in refusals[:_MOST_REFUSALS_SHOWN]:
        click.echo(f"stories: refused {one_line(str(refusal))}", err=True)
    hidden = len(refusals) - _MOST_REFUSALS_SHOWN
    if hidden > 0:
        click.echo(f"stories: {hidden} more refused; --json lists them all", err=True)
    return 3 if refusals else 0


def print_stories(stories: Sequence[StorySummary]) -> None:
    """Print a line a story: id, score if sorted by one, articles, sources, languages, latest time, headline."""
    scored = any(story.score is not None for story in stories)
    rows = [
        (
            f"#{story.id}",
            *([f"{story.score:.4g}"] if scored else []),
            str(story.size),
            str(story.sources),
            f"{story.latest_time:%Y-%m-%d %H:%M}",
            _languages(story.languages),
            one_line(story.headline),
        )
        for story in stories
    ]
    score = ["score"] if scored else []
    print_table(
        ("story", *score, "articles", "sources", "latest (UTC)", "languages", "headline"), rows
    )


def print_story(story: Story) -> None:
    """Print a story, its articles in order of time, and why each is there."""
    click.secho(f"#{story.id}  {one_line(story.headline)}", bold=True)
    click.echo(
        f"{story.size} articles, {story.sources} sources, {', '.join(story.languages)}, "
        f"{story.first_time:%Y-%m-%d %H:%M} to {story.latest_time:%Y-%m-%d %H:%M} UTC"
    )
    if story.event_id is not None:
        click.echo(f"part of event #{story.event_id}")
    for merged in story.absorbed:
        click.echo(f"absorbed #{merged.story_id} ({_why_merged(merged)}, run {merged.run_id})")
    for article in story.articles:
        _print_article(article)


def print_table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print columns, each as wide as its widest cell; the last is cut at the terminal's edge."""
    table = [tuple(heading), *map(tuple, rows)]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    room = shutil.get_terminal_size((100, 24)).columns - sum(widths[:-1]) - 2 * len(widths[:-1])
    for row in table:
        cells = [cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)]
        click.echo("  ".join([*cells[:-1], shorten(row[-1], max(room, 20))]))


def one_line(text: str) -> str:
    """Return text without line breaks, controls and marks that turn the reading direction of what follows."""
    visible = (
        " " if character.isspace() else character
        for character in text
        if character.isspace()
        or unicodedata.category(character) not in {"Cc", "Cf", "Cs"}
        or character in "\u200c\u200d"
    )
    return " ".join("".join(visible).split())


def shorten(text: str, columns: int) -> str:
    """Return text cut to a number of terminal columns."""
    if width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width(kept) + width(character) > columns - 1:
            break
        kept += character
    return kept + "…"


def width(text: str) -> int:
    """Return how many terminal columns text takes: East Asian wide characters take two, marks none."""
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _languages(languages: Sequence[str], most: int = 5) -> str:
    more = f" +{len(languages) - most}" if len(languages) > most else ""
    return " ".join(languages[:most]) + more


def _print_article(article: StoryArticle) -> None:
    click.echo(
        f"\n  [{article.id}] {article.event_time:%m-%d %H:%M}  {article.language}  "
        f"{one_line(article.source)}\n  {one_line(article.title)}"
    )
    if article.url:
        click.echo(f"  {one_line(article.url)}")
    click.echo(f"    {_why(article)}")
    for copy in article.duplicates:
        click.echo(
            f"    = [{copy.id}] {one_line(copy.source)}: {one_line(copy.title)} "
            f"(duplicate by {copy.stage}, score {copy.score:.2f}, run {copy.run_id})"
        )


def _why_merged(merged: Merged) -> str:
    if merged.score is None:
        return f"merged by {one_line(merged.editor or 'an editor')}"
    return f"pass 3 merge, score {merged.score:.3f}, needs {merged.threshold:.3f}"


def _why(article: StoryArticle) -> str:
    if article.editor is not None:
        return (
            f"put here by {one_line(article.editor)}, "
            f"{article.placed_at:%Y-%m-%d %H:%M} UTC, run {article.run_id}"
        )
    number = _PASSES[article.pass_name]
    score = "held by average linkage" if article.score is None else f"score {article.score:.3f}"
    near = f", nearest [{article.nearest_id}]" if article.nearest_id else ""
    return f"{number}: {score}, needs {article.threshold:.3f}{near}, run {article.run_id}"


def _report_line(report: RunReport) -> str:
    parts = [
        ", ".join(f"{report.counts[name]} {name}" for name in names if name in report.counts)
        for names in (_OUTCOMES, _DECISIONS)
    ]
    name = "nothing to do" if report.run_id is None else f"run {report.run_id}"
    return (
        f"{name}: "
        + "; ".join([part for part in parts if part] or ["no input"])
        + _seconds(report.seconds)
    )


def _seconds(seconds: Mapping[str, float]) -> str:
    return f" ({sum(seconds.values()):.1f} s)" if seconds else ""


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever json cannot write itself
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)
