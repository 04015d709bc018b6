"""JSON Feed, versions 1 and 1.1 (jsonfeed.org)."""

from __future__ import annotations

import json
import re
from typing import Any

from clustering.ingest.dates import parse_loosely
from clustering.ingest.entries import Entry, Markup, ParsedFeed
from clustering.ingest.markup import text_of
from clustering.ingest.trouble import Refused

_VERSION = re.compile(rb'"version"\s*:\s*"https?:(?:\\?/){2}(?:www\.)?jsonfeed\.org(?:\\?/)version')


def looks_like_json_feed(head: bytes) -> bool:
    """Tell from the beginning of a document whether it is a JSON Feed."""
    return _VERSION.search(head) is not None


def read_json_feed(data: bytes, max_entries: int) -> ParsedFeed:
    """Parse a JSON Feed.

    Raises:
        Refused: if the document is no JSON, or JSON that is no JSON Feed.
    """
    try:
        # bytes: the encoding is UTF-8, UTF-16 or UTF-32, told by its zero bytes (RFC 4627)
        feed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON ({error})", "check that the address is a feed's") from None
    if not isinstance(feed, dict) or not isinstance(feed.get("items"), list):
        raise Refused(
            "JSON, but neither JSON Lines nor a JSON Feed (an object with a list of items)",
            "convert it to JSON Lines, one article a line",
        )
    items = [item for item in feed["items"] if isinstance(item, dict)]
    return ParsedFeed(
        title=text_of(_text(feed, "title") or "") or None,
        language=_text(feed, "language"),
        self_url=_text(feed, "feed_url"),
        site_url=_text(feed, "home_page_url"),
        entries=[_entry(item) for item in items[:max_entries]],
        left_out=max(0, len(items) - max_entries),
    )


def _entry(item: dict[str, Any]) -> Entry:
    title, html = _text(item, "title"), _text(item, "content_html")
    plain = [_text(item, "content_text"), _text(item, "summary")]
    dates = [parse_loosely(_text(item, key) or "") for key in ("date_published", "date_modified")]
    return Entry(
        title=Markup(title) if title else None,
        bodies=([Markup(html, html=True)] if html else [])
        + [Markup(each) for each in plain if each],
        id=_identifier(item),
        link=_text(item, "url") or _text(item, "external_url"),
        dates=[each for each in dates if each],
        author=_author(item),
        language=_text(item, "language"),
    )


def _text(value: dict[str, Any], key: str) -> str | None:
    """Return a text field; whatever is no text counts as absent."""
    found = value.get(key)
    return found if isinstance(found, str) and found.strip() else None


def _identifier(item: dict[str, Any]) -> str | None:
    """Return the id; a number is to be read as its text (JSON Feed 1.1, items)."""
    value = item.get("id")
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number else _text(item, "id")


def _author(item: dict[str, Any]) -> str | None:
    """Return the names of `authors` (1.1) or `author` (1)."""
    authors = item.get("authors")
    listed = authors if isinstance(authors, list) else [item.get("author")]
    names = [_text(author, "name") for author in listed if isinstance(author, dict)]
    return ", ".join(name for name in names if name) or None
