"""From what the sources give to rows: upsert, then the cascade, a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustering.dedup.cascade import fold
from clustering.dedup.keys import keys_of
from clustering.dedup.urls import normalise_url
from clustering.ingest.language import settle_language
from clustering.ingest.upsert import (
    Entry,
    Key,
    add,
    content_of,
    feed_ids,
    known,
    remember_feed,
    update,
)
from clustering.records import Article, Feed, Refusal
from clustering.stories.refresh import recount_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from clustering.engine.runs import Run

BATCH_ARTICLES = 500


def take_in(
    run: Run, items: Iterable[Article | Feed | Refusal], first_seen: Callable[[Article], datetime]
) -> None:
    """Store what the sources give; outcomes are counted and refusals kept in the run.

    Each batch is one transaction. A feed's validators are stored after its articles, so that a
    process killed in between fetches them again.

    Args:
        run: the run that the decisions are recorded under.
        items: what the readers yield.
        first_seen: tells when an article was first seen: now, or the corpus' own time in a replay.
    """
    batch: dict[tuple[str, str], Article] = {}
    for item in items:
        if isinstance(item, Refusal):
            run.refusals.append(item)
            run.counts["rejected"] += 1
            continue
        key = identity(item) if isinstance(item, Article) else None
        # A live blog may come several times in one file: each version is a batch of its own.
        if key is None or key in batch or len(batch) == BATCH_ARTICLES:
            _store(run, batch, first_seen)
            batch = {}
        if isinstance(item, Feed):
            remember_feed(run.session, item)
        elif key is not None:
            batch[key] = item
    _store(run, batch, first_seen)


def identity(article: Article) -> tuple[str, str]:
    """Return an article's source and guid; a missing guid is its normalised address, else title and date."""
    guid = article.id or (normalise_url(article.url) or article.url if article.url else None)
    return article.source, guid or f"{article.title} {article.published_at}"


def _store(
    run: Run, batch: dict[tuple[str, str], Article], first_seen: Callable[[Article], datetime]
) -> None:
    if not batch:
        return
    with run.session.transaction():
        ids = feed_ids(run.session, [source for source, _ in batch])
        by_key = {Key(ids[source], guid): article for (source, guid), article in batch.items()}
        stored = known(run.session, list(by_key))
        new = {key: article for key, article in by_key.items() if key not in stored}
        changed = {
            key: article
            for key, article in by_key.items()
            if key in stored and stored[key][1] != content_of(article)
        }
        _change(
            run,
            {stored[key][0]: _entry(key, article, first_seen) for key, article in changed.items()},
        )
        folded = _add(run, [_entry(key, article, first_seen) for key, article in new.items()])
    run.counts["new"] += len(new) - folded
    run.counts["duplicate"] += folded
    run.counts["changed"] += len(changed)
    run.counts["unchanged"] += len(by_key) - len(new) - len(changed)


def _change(run: Run, entries: dict[int, Entry]) -> None:
    if entries:
        update(run.session, entries, run.id)


def _add(run: Run, entries: list[Entry]) -> int:
    if not entries:
        return 0
    ids = add(run.session, entries, run.id)
    links = fold(run.session, ids, run.id)
    recount_sources(run.session, [link.canonical_id for link in links])
    return len(links)


def _entry(key: Key, article: Article, first_seen: Callable[[Article], datetime]) -> Entry:
    language, confidence = settle_language(article.language, article.title, article.body)
    return Entry(
        key, content_of(article), keys_of(article), language, confidence, first_seen(article)
    )
