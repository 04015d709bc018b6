"""Articles that are known by their address: entries of live feeds, and what is edited again and again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from clustering.dedup.keys import url_hash
from clustering.ingest.upsert import Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from uuid import UUID

    from clustering.dedup.cascade import Link
    from clustering.ingest.upsert import Stored
    from clustering.records import Article, FeedSettings
    from clustering.store.session import Session

# A report is corrected once or twice; who reads a live blog every hour sees a new version each time. The
# fourth edit within a day is out of a correction's reach and seen before noon. Nothing is lost by a
# report that gets there: it is encoded at most hourly, and its text folds it no more.
LIVE_EDITS = 4
LIVE_SPAN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Arrival:
    """The versions of one article in a batch: the first says when it came, the last what it says."""

    first: Article
    last: Article
    versions: int = 1

    def joined(self, other: Arrival) -> Arrival:
        """Return this with versions that came under another guid; the latest date wins, then the last to come."""
        older = (
            other.last.published_at is not None
            and self.last.published_at is not None
            and other.last.published_at < self.last.published_at
        )
        last = self.last if older else other.last
        return replace(self, last=last, versions=self.versions + other.versions)


def by_address(
    session: Session,
    arrived: Mapping[Key, Arrival],
    stored: Mapping[Key, Stored],
    settings: Mapping[int, FeedSettings],
) -> dict[Key, Arrival]:
    """Return arrivals under the key of the article that each is a version of.

    Most keep their own key. In a live feed, and where an article of the feed is live, whatever has the
    same address is a version of one article, which keeps the guid that it came with first.

    Args:
        session: inside a transaction.
        arrived: arrivals by feed and guid.
        stored: what the database has under those keys.
        settings: settings by feed id; of feeds with the usual ones nothing.
    """
    hashes = {
        key: hashed
        for key, arrival in arrived.items()
        if _may_be_a_version(stored.get(key), settings.get(key.feed_id))
        and (hashed := _hash(arrival, settings.get(key.feed_id))) is not None
    }
    if not hashes:
        return dict(arrived)
    guids = _guids(session, hashes, settings)
    merged: dict[Key, Arrival] = {}
    for key, arrival in arrived.items():
        own = Key(key.feed_id, guids.get((key.feed_id, hashes.get(key)), key.guid))
        merged[own] = merged[own].joined(arrival) if own in merged else arrival
    return merged


def count_edits(session: Session, edits: Mapping[int, tuple[datetime, int]]) -> None:
    """Count edits of articles, by id: when the last was seen, and how many; who has many becomes live."""
    counted = {article: edit for article, edit in edits.items() if edit[1]}
    if counted:
        session.execute(
            "count_edits",
            article_ids=list(counted),
            times=[seen_at for seen_at, _ in counted.values()],
            edits=[number for _, number in counted.values()],
            least=LIVE_EDITS,
            span=LIVE_SPAN,
        )


def count_reissues(session: Session, links: Iterable[Link]) -> None:
    """Count as edits what feeds gave under an address of theirs again, with another guid and other text."""
    pairs = [(link.article_id, link.canonical_id) for link in links if link.stage == "url"]
    if pairs:
        rows = session.rows(
            "reissues",
            article_ids=[article for article, _ in pairs],
            canonical_ids=[canonical for _, canonical in pairs],
        )
        count_edits(session, {row.article_id: (row.seen_at, row.edits) for row in rows})


def _may_be_a_version(stored: Stored | None, settings: FeedSettings | None) -> bool:
    is_live_feed = settings is not None and settings.kind == "live"
    return is_live_feed or stored is None or stored.is_duplicate


def _hash(arrival: Arrival, settings: FeedSettings | None) -> UUID | None:
    return url_hash(arrival.last.url, frozenset(settings.identity_params if settings else ()))


def _guids(
    session: Session, hashes: Mapping[Key, UUID], settings: Mapping[int, FeedSettings]
) -> dict[tuple[int, UUID | None], str]:
    """Return the guid under which the articles of addresses are kept, by feed and hash of the address."""
    rows = session.rows(
        "addressed_articles",
        feed_ids=[key.feed_id for key in hashes],
        url_hashes=list(hashes.values()),
    )
    guids: dict[tuple[int, UUID | None], str] = {}
    for row in rows:
        guids.setdefault((row.feed_id, row.url_hash), row.guid)
    for key, hashed in hashes.items():
        own = settings.get(key.feed_id)
        if own is not None and own.kind == "live":
            guids.setdefault((key.feed_id, hashed), key.guid)
    return guids
