"""Entries of feeds, whatever their format, to articles.

Lenient, because who reads a feed cannot mend it: what is unusable is dropped or made up for, and
only an entry without any text is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from clustering.ingest.cleaning import clean_line, cut
from clustering.ingest.markup import text_of
from clustering.ingest.tags import normalise_tag
from clustering.records import Article

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from clustering.ingest.dates import DateBounds

_TITLE_CHARS = 10_000
_BODY_CHARS = 1_000_000
_AUTHOR_CHARS = 500
_ID_BYTES = 2_000  # PostgreSQL's indexes hold no more than 2,704
_MADE_TITLE_CHARS = 100
# Sentence ends: Latin, Arabic, Urdu, Indic, Ethiopic, Armenian and Burmese; then East Asian, which
# no space follows.
_SENTENCE = re.compile(
    ".+?(?:[.!?\u2026\u061f\u06d4\u0964\u1362\u0589\u104b]+(?=\\s|$)|[\u3002\uff01\uff1f]+|$)"
)


@dataclass(frozen=True, slots=True)
class Markup:
    """Text of an entry as the feed has it; `html` where the feed says that it is HTML."""

    value: str
    html: bool = False

    def plain(self) -> str:
        """Return the plain text."""
        return text_of(self.value, html=self.html)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as its format gives it, nothing cleaned yet.

    Attributes:
        title: None or blank if there is none.
        bodies: summary, content and the like; the longest is taken.
        id: guid.
        link: address, absolute or relative.
        dates: timezone-aware, the preferred one first.
        author: byline.
        language: tag that the entry itself declares.
    """

    title: Markup | None
    bodies: Sequence[Markup]
    id: str | None
    link: str | None
    dates: Sequence[datetime]
    author: str | None
    language: str | None


@dataclass(frozen=True, slots=True)
class ParsedFeed:
    """A feed as its format gives it.

    Attributes:
        title: human name, plain text.
        language: tag that the feed declares.
        self_url: address that the feed gives as its own.
        site_url: address of the site that it belongs to.
        entries: in the feed's order.
        left_out: entries beyond the limit, which were not parsed.
    """

    title: str | None
    language: str | None
    self_url: str | None
    site_url: str | None
    entries: Sequence[Entry]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """What an entry takes from its feed.

    Attributes:
        source: the article's source.
        base: address that relative links start from; None if there is none.
        language: for entries that declare none.
        bounds: dates outside are dropped.
    """

    source: str
    base: str | None
    language: str | None
    bounds: DateBounds


def to_article(entry: Entry, setting: Setting) -> Article | None:
    """Make an article of an entry; None if it has neither a title nor a body."""
    body = cut(max((each.plain() for each in entry.bodies), key=len, default=""), _BODY_CHARS)
    title = clean_line(entry.title.plain()) if entry.title else ""
    title = cut(title, _TITLE_CHARS) or _title_from(body)
    if not title:
        return None
    url = web_address(entry.link, setting.base)
    published_at = next((each for each in entry.dates if each in setting.bounds), None)
    given = clean_line(entry.id or "") or clean_line(entry.link or "")
    return Article(
        title=title,
        id=_bounded(given or url) or _made_id(title, published_at),
        url=url,
        source=setting.source,
        body=body,
        author=cut(clean_line(entry.author or ""), _AUTHOR_CHARS) or None,
        published_at=published_at,
        language=normalise_tag(entry.language) or normalise_tag(setting.language),
    )


def web_address(link: str | None, base: str | None) -> str | None:
    """Return the absolute http or https address of a link, None if it has none."""
    cleaned = clean_line(link or "")
    if not cleaned:
        return None
    try:
        address = urljoin(base or "", cleaned)
        parts = urlsplit(address)
    except ValueError:
        return None
    return address if parts.scheme in {"http", "https"} and parts.netloc else None


def _title_from(body: str) -> str:
    """Return the first sentence of a body, at most 100 characters of it."""
    found = _SENTENCE.match(body.partition("\n")[0])
    return cut(found[0], _MADE_TITLE_CHARS) if found else ""


def _bounded(identifier: str | None) -> str | None:
    """Return an id that fits into an index, its hash if it is too long."""
    encoded = (identifier or "").encode()
    return identifier if len(encoded) <= _ID_BYTES else sha256(encoded).hexdigest()


def _made_id(title: str, published_at: datetime | None) -> str:
    """Return an id that the same entry gets at every reading."""
    date = published_at.isoformat() if published_at else ""
    return sha256(f"{title}\n{date}".encode()).hexdigest()
