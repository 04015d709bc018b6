"""What becomes of an article that arrives: new, changed or unchanged, and the rows that say so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clustering.records import Article, Feed, Keys
    from clustering.store.session import Session

_OLDEST = timedelta(days=30)
_LATEST = timedelta(hours=1)


class Key(NamedTuple):
    """Identity of an article: its feed and the feed's own id for it."""

    feed_id: int
    guid: str


class Content(NamedTuple):
    """What a re-fetched entry may have changed."""

    url: str | None
    title: str
    body: str
    author: str | None
    published_at: datetime | None


@dataclass(frozen=True, slots=True)
class Entry:
    """An article ready to be stored.

    Attributes:
        key: feed and guid.
        content: what may change in later fetches.
        keys: hashes for the cascade.
        language: BCP 47 tag, `und` where unknown.
        language_confidence: 0 to 1.
        event_time: the time that clustering uses; kept through later changes.
        first_seen: when this engine first saw it.
    """

    key: Key
    content: Content
    keys: Keys
    language: str
    language_confidence: float
    event_time: datetime
    first_seen: datetime


@dataclass(frozen=True, slots=True)
class Stored:
    """An article that the database has.

    Attributes:
        id: its id.
        content: what later fetches may change.
        is_live: whether it is known by its address, and its text changes all the time.
        is_duplicate: whether another stands for it.
    """

    id: int
    content: Content
    is_live: bool
    is_duplicate: bool


def content_of(article: Article) -> Content:
    """Return the part of an article that later fetches may change."""
    return Content(article.url, article.title, article.body, article.author, article.published_at)


def event_time(published_at: datetime | None, first_seen: datetime) -> datetime:
    """Return the time that clustering uses.

    It is `published_at` when that lies between 30 days before and 1 hour after `first_seen`, else
    `first_seen`. Exactly midnight, seen later that day, is a date without a time of day: 73 to 79 %
    of some feeds' dates are (two reports), so it counts as `first_seen` too.
    """
    if published_at is None or not first_seen - _OLDEST <= published_at <= first_seen + _LATEST:
        return first_seen
    is_midnight = published_at.time() == datetime.min.time()
    if is_midnight and published_at.date() == first_seen.date():
        return first_seen
    return published_at


def feed_ids(session: Session, addresses: Iterable[str]) -> dict[str, int]:
    """Return the ids of feeds by address, adding those that are not there yet."""
    wanted = sorted(set(addresses))
    found = dict(session.rows("feed_ids", addresses=wanted))
    missing = [address for address in wanted if address not in found]
    if missing:
        session.execute("add_feeds", addresses=missing)
        found |= dict(session.rows("feed_ids", addresses=missing))
    return found


def known(session: Session, keys: Sequence[Key]) -> dict[Key, Stored]:
    """Return the stored state of those articles that the database has."""
    rows = session.rows(
        "known_articles", feed_ids=[key.feed_id for key in keys], guids=[key.guid for key in keys]
    )
    return {
        Key(row.feed_id, row.guid): Stored(
            row.id,
            Content(row.url, row.title, row.body, row.author, row.published_at),
            is_live=row.live_since is not None,
            is_duplicate=row.is_duplicate,
        )
        for row in rows
    }


def add(session: Session, entries: Sequence[Entry], run_id: int) -> list[int]:
    """Add new articles; returns their ids."""
    return [row.id for row in session.rows("add_articles", run_id=run_id, **_columns(entries))]


def update(session: Session, entries: Mapping[int, Entry], run_id: int) -> None:
    """Write changed articles over their rows (by id) and raise their revision."""
    columns = _columns(list(entries.values()))
    kept = {name: columns[name] for name in (*Content._fields, *_KEPT)}
    session.execute("change_articles", ids=list(entries), run_id=run_id, **kept)


def remember_feed(session: Session, feed: Feed) -> None:
    """Store what a feed says of itself, once its articles are stored."""
    session.execute(
        "update_feed",
        address=feed.address,
        title=feed.title,
        language=feed.language,
        etag=feed.etag,
        last_modified=feed.last_modified,
    )


_KEPT = (
    "language",
    "language_confidence",
    "entry_hash",
    "url_hash",
    "content_hash",
    "simhash",
    "band_1",
    "band_2",
    "band_3",
    "band_4",
    "title_sketch",
)


def _columns(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """Turn entries into one list a column, as `unnest` takes them."""
    rows = [
        {
            **entry.key._asdict(),
            **entry.content._asdict(),
            "language": entry.language,
            "language_confidence": entry.language_confidence,
            "event_time": entry.event_time,
            "first_seen": entry.first_seen,
            "entry_hash": entry.keys.entry_hash,
            "url_hash": entry.keys.url_hash,
            "content_hash": entry.keys.content_hash,
            "simhash": entry.keys.simhash,
            **{f"band_{place}": band for place, band in enumerate(entry.keys.bands, start=1)},
            # `unnest` would take lists of lists apart: an array travels as its own text.
            "title_sketch": "{" + ",".join(map(str, entry.keys.title_sketch)) + "}",
        }
        for entry in entries
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}
