"""RSS 0.9x, 1.0 and 2.0, RDF and Atom, well-formed or not, with feedparser."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

from clustering.ingest.cleaning import clean_line
from clustering.ingest.dates import from_struct, parse_loosely
from clustering.ingest.entries import Entry, Markup, ParsedFeed, web_address
from clustering.ingest.markup import text_of
from clustering.ingest.safexml import Document, cut_after
from clustering.ingest.trouble import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

#: Local names of the root elements that feedparser understands.
ROOTS = frozenset({"rss", "rdf", "feed", "channel", "entry"})
_ENTRY = re.compile(r"<(?:[\w.-]+:)?(?:item|entry)(?=[\s/>])", re.IGNORECASE)
_PROLOG = '<?xml version="1.0" encoding="utf-8"?>\n'
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_DATES = ("published", "updated", "created")
_MAIL_ADDRESS = re.compile(r"[(<]?(?:mailto:)?[^\s()<>]{1,256}@[^\s()<>]{1,256}[)>]?")


def read_xml_feed(document: Document, base: str | None, max_entries: int) -> ParsedFeed:
    """Parse a feed.

    Args:
        document: the feed, its root one of `ROOTS`.
        base: address that relative links start from.
        max_entries: later ones are left out.

    Raises:
        Refused: if the document is so ill-formed that nothing can be read.
    """
    text, left_out = cut_after(document, _ENTRY, max_entries)
    parsed = _parse(_PROLOG + text, base)
    if parsed["bozo"] and not parsed["entries"]:
        raise Refused(
            "an ill-formed feed, and no entry of it can be read", "open it; tell the publisher"
        )
    feed = parsed["feed"]
    return ParsedFeed(
        title=clean_line(text_of(_get(feed, "title") or "")) or None,
        language=_get(feed, "language"),
        self_url=_self_url(feed),
        site_url=web_address(_get(feed, "link"), base),
        entries=[_entry(each) for each in parsed["entries"]],
        left_out=left_out,
    )


def _parse(text: str, base: str | None) -> dict[str, Any]:
    """Run feedparser.

    Raises:
        Refused: if it fails, as it does on some ill-formed documents.
    """
    import feedparser  # noqa: PLC0415 - loaded when first needed

    headers = {"content-type": "application/xml; charset=utf-8"}
    if base:
        headers["content-location"] = base
    try:
        # Markup is left as it is: only text is kept of it, and that has no links to resolve.
        parsed: dict[str, Any] = feedparser.parse(
            io.BytesIO(text.encode()),
            response_headers=headers,
            resolve_relative_uris=False,
            sanitize_html=False,
        )
    except Exception as error:  # feedparser raises whatever its parsers raise
        raise Refused(
            f"a feed too ill-formed to be read ({type(error).__name__})", "tell the publisher"
        ) from error
    return parsed


def _get(values: dict[str, Any], key: str) -> str | None:
    """Return a text field, whatever feedparser's aliases say."""
    value = dict.get(values, key)
    return value if isinstance(value, str) and value.strip() else None


def _self_url(feed: dict[str, Any]) -> str | None:
    links = [link for link in dict.get(feed, "links") or [] if link.get("rel") == "self"]
    return next(filter(None, (web_address(_get(link, "href"), None) for link in links)), None)


def _entry(entry: dict[str, Any]) -> Entry:
    title = _get(entry, "title")
    return Entry(
        title=Markup(title, html=_is_html(dict.get(entry, "title_detail"))) if title else None,
        bodies=list(_bodies(entry)),
        id=_get(entry, "id"),
        link=_get(entry, "feedburner_origlink") or _get(entry, "link"),
        dates=list(_dates(entry)),
        author=_author(entry),
        language=_language(entry),
    )


def _is_html(detail: dict[str, Any] | None) -> bool:
    return detail is not None and detail.get("type") in _HTML_TYPES


def _bodies(entry: dict[str, Any]) -> Iterator[Markup]:
    """Give the entry's summary and its contents, pictures and the like left out."""
    summary = _get(entry, "summary")
    if summary:
        yield Markup(summary, html=_is_html(dict.get(entry, "summary_detail")))
    for content in dict.get(entry, "content") or []:
        value, kind = _get(content, "value"), content.get("type") or "text/html"
        if value and (kind in _HTML_TYPES or kind.startswith("text/")):
            yield Markup(value, html=kind in _HTML_TYPES)


def _dates(entry: dict[str, Any]) -> Iterator[datetime]:
    """Give publication before update before creation."""
    for key in _DATES:
        moment = from_struct(dict.get(entry, f"{key}_parsed")) or parse_loosely(
            _get(entry, key) or ""
        )
        if moment is not None:
            yield moment


def _author(entry: dict[str, Any]) -> str | None:
    """Return the names; the mail addresses beside them are nobody's business here.

    feedparser's own split of name and address cuts through addresses that it does not know.
    """
    authors = [each for each in dict.get(entry, "authors") or [] if isinstance(each, dict)]
    names = [name for name in (_get(author, "name") for author in authors) if name]
    byline = ", ".join(dict.fromkeys(names)) if len(names) > 1 else _get(entry, "author") or ""
    name = _MAIL_ADDRESS.sub("", byline).strip()
    return (name[1:-1] if name.startswith("(") and name.endswith(")") else name) or None


def _language(entry: dict[str, Any]) -> str | None:
    """Return what `xml:lang` or `dc:language` say of the entry, or of the feed around it."""
    details = [dict.get(entry, "title_detail"), dict.get(entry, "summary_detail")]
    details += dict.get(entry, "content") or []
    inner = (_get(detail, "language") for detail in details if detail)
    return _get(entry, "language") or next(filter(None, inner), None)
