"""From what the sources give to rows: upsert, then the cascade, a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clustering.dedup.cascade import fold
from clustering.dedup.keys import address_keys, keys_of
from clustering.dedup.revisions import reconsider
from clustering.dedup.urls import normalise_url
from clustering.engine.live import Arrival, by_address, count_edits, count_reissues
from clustering.ingest.language import settle_language
from clustering.ingest.settings import special_feeds
from clustering.ingest.upsert import (
    Content,
    Entry,
    Key,
    Stored,
    add,
    content_of,
    event_time,
    feed_ids,
    known,
    remember_feed,
    update,
)
from clustering.records import Article, Feed, FeedSettings, Refusal
from clustering.stories.refresh import recount_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from clustering.engine.runs import Run

BATCH_ARTICLES = 500
_NO_PARAMS: frozenset[str] = frozenset()


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
    intake = Intake(run, first_seen, special_feeds(run.session))
    for item in items:
        intake.take(item)
    intake.flush()


def identity(article: Article, identity_params: frozenset[str] = _NO_PARAMS) -> tuple[str, str]:
    """Return an article's source and guid; a missing guid is its normalised address, else title and date."""
    guid = article.id or (made_guid(article.url, identity_params) if article.url else None)
    return article.source, guid or f"{article.title} {article.published_at}"


def made_guid(url: str, identity_params: frozenset[str]) -> str:
    """Return the guid of an article that has an address and no guid."""
    return normalise_url(url, identity_params) or url


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


@dataclass
class Intake:
    """Collects what the sources give into batches, and stores each in one transaction.

    Attributes:
        run: the run that the decisions are recorded under.
        first_seen: tells when an article was first seen.
        special: settings, by address, of feeds whose entries are told apart in another way than usual.
        batch: arrivals by source and guid.
    """

    run: Run
    first_seen: Callable[[Article], datetime]
    special: Mapping[str, FeedSettings]
    batch: dict[tuple[str, str], Arrival] = field(default_factory=dict)

    def take(self, item: Article | Feed | Refusal) -> None:
        """Take one item; a full batch is stored, and so is what came before a feed's end."""
        if isinstance(item, Refusal):
            self.run.refusals.append(item)
            self.run.counts["rejected"] += 1
        elif isinstance(item, Feed):
            self.flush()
            remember_feed(self.run.session, item)
        else:
            key = identity(item, self._params(item.source))
            self.batch[key] = _with_version(self.batch.get(key), item)
            if len(self.batch) == BATCH_ARTICLES:
                self.flush()

    def flush(self) -> None:
        """Store what has come so far."""
        batch, self.batch = self.batch, {}
        if batch:
            with self.run.session.transaction():
                self._store(batch)

    def _store(self, batch: Mapping[tuple[str, str], Arrival]) -> None:
        session = self.run.session
        ids = feed_ids(session, [source for source, _ in batch])
        settings = {ids[a]: self.special[a] for a in ids if a in self.special}
        given = {Key(ids[source], guid): arrival for (source, guid), arrival in batch.items()}
        stored = known(session, list(given))
        arrived = by_address(session, given, stored, settings)
        stored |= known(session, [key for key in arrived if key not in stored])
        new = {key: arrival for key, arrival in arrived.items() if key not in stored}
        changed = {
            key: arrival
            for key, arrival in arrived.items()
            if key in stored and is_change(stored[key].content, content_of(arrival.last))
        }
        again = self._change({key: stored[key] for key in changed}, changed)
        folded = self._add(new, again)
        self._count(arrived, new, changed, folded)

    def _change(self, stored: Mapping[Key, Stored], changed: Mapping[Key, Arrival]) -> list[int]:
        """Write changed articles; returns the ids of those that the cascade has to see again."""
        if not changed:
            return []
        run = self.run
        entries = {
            stored[key].id: self._entry(key, arrival, is_live=stored[key].is_live)
            for key, arrival in changed.items()
        }
        update(run.session, entries, run.id)
        edits = {
            stored[key].id: (self.first_seen(arrival.last), arrival.versions)
            for key, arrival in changed.items()
        }
        count_edits(run.session, edits)
        reconsidered = reconsider(run.session, list(entries), run.id)
        recount_sources(run.session, reconsidered.bereft)
        return reconsidered.again

    def _add(self, new: Mapping[Key, Arrival], again: list[int]) -> int:
        """Add new articles and fold them, with what changed; returns how many of the new are duplicates."""
        if not new and not again:
            return 0
        run = self.run
        entries = [self._entry(key, arrival) for key, arrival in new.items()]
        ids = add(run.session, entries, run.id) if entries else []
        if self.special:
            run.session.execute("mark_live", article_ids=[*ids, *again])
        links = fold(run.session, [*ids, *again], run.id)
        count_reissues(run.session, links)
        recount_sources(run.session, [link.canonical_id for link in links])
        return len({link.article_id for link in links} & set(ids))

    def _entry(self, key: Key, arrival: Arrival, *, is_live: bool = False) -> Entry:
        article = arrival.last
        language, confidence = settle_language(article.language, article.title, article.body)
        keys = keys_of(article, self._params(article.source))
        known_by_address = article.url and (is_live or self._is_live_feed(article.source))
        return Entry(
            key=key,
            content=content_of(article),
            keys=address_keys(keys) if known_by_address else keys,
            language=language,
            language_confidence=confidence,
            event_time=event_time(arrival.first.published_at, self.first_seen(arrival.first)),
            first_seen=self.first_seen(arrival.first),
        )

    def _params(self, source: str) -> frozenset[str]:
        settings = self.special.get(source)
        return frozenset(settings.identity_params) if settings else _NO_PARAMS

    def _is_live_feed(self, source: str) -> bool:
        settings = self.special.get(source)
        return settings is not None and settings.kind == "live"

    def _count(
        self,
        arrived: Mapping[Key, Arrival],
        new: Mapping[Key, Arrival],
        changed: Mapping[Key, Arrival],
        folded: int,
    ) -> None:
        counts = self.run.counts
        counts["new"] += len(new) - folded
        counts["duplicate"] += folded
        counts["changed"] += _versions(changed) + _versions(new) - len(new)
        counts["unchanged"] += _versions(arrived) - _versions(new) - _versions(changed)


def _with_version(before: Arrival | None, article: Article) -> Arrival:
    if before is None:
        return Arrival(article, article)
    return replace(before, last=article, versions=before.versions + 1)


def _versions(arrivals: Mapping[Key, Arrival]) -> int:
    return sum(arrival.versions for arrival in arrivals.values())
