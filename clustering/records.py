"""Frozen records that pass between the stages. All times are timezone-aware and UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class Article:
    """One article as a source gives it; only `title` and one of `id` and `url` are required.

    Attributes:
        title: headline, plain text.
        id: the source's own identifier (guid), unique within `source`.
        url: address of the article.
        source: feed name or address; the scope of `id`.
        body: plain text, the lede or the whole article.
        author: byline.
        published_at: time that the source states; None where it states none.
        language: BCP 47 tag that the source states (`pt-BR`); None where it states none.
    """

    title: str
    id: str | None = None
    url: str | None = None
    source: str = "unknown"
    body: str = ""
    author: str | None = None
    published_at: datetime | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """What is known of a feed after it was read.

    Attributes:
        address: the feed's key: its address, or the name that JSON Lines rows give as source.
        title: human name.
        language: BCP 47 tag that the feed declares.
        etag: validator of the last answer, for conditional requests.
        last_modified: likewise, verbatim.
    """

    address: str
    title: str | None = None
    language: str | None = None
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True)
class FeedSettings:
    """How the entries of a feed are told apart, and when two of its articles are one.

    Attributes:
        address: the feed's address, or the name that JSON Lines rows give as source.
        title: human name.
        language: BCP 47 tag that the feed declares.
        kind: `live` where an entry is one address whose text changes, whatever guid it has; else `normal`.
        duplicate_window: time within which two of like text are one.
        identity_params: query parameters that name an article on the feed's site, sorted.
    """

    address: str
    title: str | None = None
    language: str | None = None
    kind: str = "normal"
    duplicate_window: timedelta = timedelta(hours=48)
    identity_params: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A piece of input that was refused, while the rest went through.

    Attributes:
        source: file, address or feed that it came from.
        line: line of the file, from 1; None where lines mean nothing.
        reason: what is wrong.
        remedy: what to do about it.
    """

    source: str
    line: int | None
    reason: str
    remedy: str

    def __str__(self) -> str:
        """Return `source:line: reason; remedy` on one line."""
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place}: {self.reason}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Keys:
    """What the stages of the cascade compare. Hashes have 128 bits, integers 64 with a sign.

    Attributes:
        entry_hash: over trimmed title, body and address; compared within a feed.
        url_hash: over the normalised address; None for a front page or no web address.
        content_hash: over canonical body text; None for a body too short to be told from a stub.
        simhash: over the shingles of the body; None where there is no content hash.
        bands: four hashes of which near copies of a body share most; None likewise, each.
        title_sketch: the 32 smallest shingle hashes of the title, ascending.
    """

    entry_hash: UUID
    url_hash: UUID | None
    content_hash: UUID | None
    simhash: int | None
    bands: tuple[int | None, ...]
    title_sketch: tuple[int, ...]
