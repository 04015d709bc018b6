"""From what the sources give to rows: upsert, then the cascade, a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.dedup.cascade import fold
from clustering.dedup.keys import keys_of
from clustering.dedup.urls import normalise_url
from clustering.ingest.language import settle_language
from clustering.ingest.upsert import (
    Content,
    Entry,
    Key,
    add,
    content_of,
    event_time,
    feed_ids,
    known,
    remember_feed,
    update,
)
from clustering.records import Article, Feed, Refusal
from clustering.stories.refresh import recount_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from clustering.engine.runs import Run

BATCH_ARTICLES = 500


@dataclass(frozen=True, slots=True)
class Arrival:
    """The versions of one article in a batch: the first says when it came, the last what it says."""

    first: Article
    last: Article
    versions: int = 1


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
    batch: dict[tuple[str, str], Arrival] = {}
    for item in items:
        if isinstance(item, Refusal):
            run.refusals.append(item)
            run.counts["rejected"] += 1
        elif isinstance(item, Feed):
            _store(run, batch, first_seen)
            batch = {}
            remember_feed(run.session, item)
        else:
            key = identity(item)
            batch[key] = _with_version(batch.get(key), item)
            if len(batch) == BATCH_ARTICLES:
                _store(run, batch, first_seen)
                batch = {}
    _store(run, batch, first_seen)


def identity(article: Article) -> tuple[str, str]:
    """Return an article's source and guid; a missing guid is its normalised address, else title and date."""
    guid = article.id or (normalise_url(article.url) or article.url if article.url else None)
    return article.source, guid or f"{article.title} {article.published_at}"


def is_change(stored: Content, arrived: Content) -> bool:
    """Tell whether an article that arrives again says something new.

    An older version of it does not: a feed behind a cache, or a file that holds every version of a
    live blog, would else undo and redo the same edits with each run.
    """
    stale = (
        stored.published_at is not None
        and arrived.published_at is not None
        and arrived.published_at < stored.published_at
    )
    return stored != arrived and not stale


def _with_version(before: Arrival | None, article: Article) -> Arrival:
    if before is None:
        return Arrival(article, article)
    return Arrival(before.first, article, before.versions + 1)


def _store(
    run: Run,
    batch: dict[tuple[str, str], Arrival],
    first_seen: Callable[[Article], datetime],
) -> None:
    if not batch:
        return
    with run.session.transaction():
        ids = feed_ids(run.session, [source for source, _ in batch])
        arrived = {Key(ids[source], guid): arrival for (source, guid), arrival in batch.items()}
        stored = known(run.session, list(arrived))
        new = {key: arrival for key, arrival in arrived.items() if key not in stored}
        changed = {
            key: arrived[key]
            for key, (_, content) in stored.items()
            if is_change(content, content_of(arrived[key].last))
        }
        _change(run, {stored[key][0]: _entry(key, changed[key], first_seen) for key in changed})
        folded = _add(run, [_entry(key, arrival, first_seen) for key, arrival in new.items()])
    run.counts["new"] += len(new) - folded
    run.counts["duplicate"] += folded
    run.counts["changed"] += _versions(changed) + _versions(new) - len(new)
    run.counts["unchanged"] += _versions(arrived) - _versions(new) - _versions(changed)


def _versions(arrivals: Mapping[Key, Arrival]) -> int:
    return sum(arrival.versions for arrival in arrivals.values())


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


def _entry(key: Key, arrival: Arrival, first_seen: Callable[[Article], datetime]) -> Entry:
    article = arrival.last
    language, confidence = settle_language(article.language, article.title, article.body)
    return Entry(
        key=key,
        content=content_of(article),
        keys=keys_of(article),
        language=language,
        language_confidence=confidence,
        event_time=event_time(arrival.first.published_at, first_seen(arrival.first)),
        first_seen=first_seen(arrival.first),
    )
