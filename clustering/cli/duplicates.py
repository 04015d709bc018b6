"""Commands about what was folded or flagged: duplicates list and undo, review list and decide."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from clustering.cli.options import BY, database_options, open_engine, reading_options
from clustering.cli.output import one_line, print_json
from clustering.cli.parameters import Moment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clustering.dedup.links import DuplicateLink, LinkFilter
    from clustering.dedup.review import FlaggedArticle, FlaggedPair, Verdict
    from clustering.settings import Settings

_LIMIT = click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many."
)
_FILTERS = (
    click.option(
        "--article",
        "article_ids",
        type=int,
        multiple=True,
        metavar="ID",
        help="Links of this article: from it, and to it.",
    ),
    click.option(
        "--stage",
        type=click.Choice(["entry", "url", "content", "simhash"]),
        help="Links that this stage made.",
    ),
    click.option("--run", "run_id", type=int, metavar="ID", help="Links that this run made."),
    click.option("--since", type=Moment(), help="Links made since then (24h, 2026-03-10)."),
)


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which links are meant; the command gets them as `wanted`."""

    @wraps(command)
    def call(**values: Any) -> object:  # noqa: ANN401 - values of options
        from clustering.dedup.links import LinkFilter  # noqa: PLC0415 - keeps --help fast

        given = {name: values.pop(name) for name in ("article_ids", "stage", "run_id", "since")}
        wanted = LinkFilter(**given | {"article_ids": given["article_ids"] or None})
        return command(wanted=wanted, **values)

    for option in reversed(_FILTERS):
        option(call)
    return call


@click.group()
def duplicates() -> None:
    """Look at what was folded into what, and take it back."""


@duplicates.command(name="list")
@_filters
@click.option("--undone", is_flag=True, help="Links that were taken back, instead.")
@_LIMIT
@reading_options
def list_duplicates(
    settings: Settings, *, wanted: LinkFilter, undone: bool, limit: int, as_json: bool
) -> None:
    """List duplicates with the stage, score and run that folded each, the latest first."""
    with open_engine(settings) as engine:
        found = engine.duplicates(replace(wanted, taken_back=undone), limit=limit)
    if as_json:
        print_json(found)
    elif found:
        _print_links(found)
    else:
        click.echo("no such duplicates", err=True)


@duplicates.command(name="undo")
@_filters
@click.option(
    "--pair", type=int, nargs=2, metavar="ID ID", help="The link between these two articles."
)
@database_options
def undo_duplicates(
    settings: Settings, *, wanted: LinkFilter, pair: tuple[int, int] | None, as_json: bool
) -> None:
    """Take back the links that `duplicates list` shows for the same conditions.

    The duplicates are articles of their own again and are placed by the next run. The stage that
    folded them never folds the same pair again.
    """
    if pair is not None and not wanted.is_open():
        raise click.UsageError("--pair names one link; it goes with no other condition")
    with open_engine(settings) as engine:
        undone = engine.undo_pair(*pair) if pair else engine.undo_duplicates(wanted)
    if as_json:
        print_json({"run_id": undone.run_id, "undone": undone.links})
        return
    click.echo(f"run {undone.run_id}: {len(undone.links)} taken back")
    _print_links(undone.links)


@click.group()
def review() -> None:
    """Look at pairs that are left to a person, and decide them."""


@review.command(name="list")
@click.option("--decided", is_flag=True, help="Pairs that somebody decided, instead.")
@_LIMIT
@reading_options
def list_review(settings: Settings, *, decided: bool, limit: int, as_json: bool) -> None:
    """List pairs of articles with like titles, the latest first."""
    with open_engine(settings) as engine:
        found = engine.review(decided=decided, limit=limit)
    if as_json:
        print_json(found)
        return
    for pair in found:
        _print_pair(pair)
    if not found:
        click.echo("no pair has been decided" if decided else "no pair waits", err=True)


@review.command(name="decide")
@click.argument("a_id", type=int, metavar="ARTICLE")
@click.argument("b_id", type=int, metavar="ARTICLE")
@click.argument("verdict", type=click.Choice(["same", "different"]))
@BY
@database_options
def decide(  # noqa: PLR0913 - one keyword for each argument
    settings: Settings, *, a_id: int, b_id: int, verdict: Verdict, by: str, as_json: bool
) -> None:
    """Say whether two articles report the same event or different ones.

    `different` also parts the two where they are folded together, for good. `same` folds nothing.
    """
    with open_engine(settings) as engine:
        engine.judge(a_id, b_id, verdict, by=by)
    if as_json:
        print_json({"articles": sorted((a_id, b_id)), "verdict": verdict, "by": by})
    else:
        click.echo(f"[{a_id}] and [{b_id}]: {verdict}, says {one_line(by)}")


def _print_links(links: Sequence[DuplicateLink]) -> None:
    for link in links:
        state = "" if link.retracted_at is None else f", {'lapsed' if link.lapsed else 'undone'}"
        click.echo(
            f"[{link.article_id}] {one_line(link.source)}: {one_line(link.title)}\n"
            f"  = [{link.canonical_id}] {one_line(link.canonical_source)}: {one_line(link.canonical_title)}\n"
            f"    {link.stage}: score {link.score:.2f}, needs {link.threshold:.2f}, "
            f"run {link.run_id}, {link.made_at:%Y-%m-%d %H:%M} UTC{state}"
        )


def _print_pair(pair: FlaggedPair) -> None:
    for article in (pair.a, pair.b):
        _print_flagged(article)
    verdict = f": {pair.verdict}, says {one_line(pair.judged_by or '')}" if pair.verdict else ""
    click.echo(
        f"    {pair.stage}: score {pair.score:.2f}, needs {pair.threshold:.2f}, run {pair.run_id}{verdict}"
    )


def _print_flagged(article: FlaggedArticle) -> None:
    click.echo(
        f"[{article.id}] {article.event_time:%Y-%m-%d %H:%M}  {one_line(article.source)}: "
        f"{one_line(article.title)}" + (f"\n  {one_line(article.url)}" if article.url else "")
    )
