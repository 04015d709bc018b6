"""What a document is, told by how it begins, not by its name alone."""

from __future__ import annotations

import codecs
import json
import re
from typing import Literal

from clustering.ingest.jsonfeed import looks_like_json_feed

Kind = Literal["empty", "xml", "json", "lines", "unknown"]

_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_XML_AHEAD = re.compile(rb"<(?:\?xml|rss|feed|opml|(?:\w+:)?RDF)[\s>]")
_STRAY_BYTES = 4_096
_LINES_NAMES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


def kind_of(head: bytes, name: str) -> Kind:
    """Tell a document's kind.

    Args:
        head: its first bytes, decompressed; the more the better.
        name: file name or address; decides only between lines and other text.

    Returns:
        "xml" (a feed, OPML or an HTML page), "json" (a whole document), "lines" (JSON Lines).
    """
    start = _start(head)
    if not start:
        return "empty" if len(head) < _STRAY_BYTES else "unknown"
    named_lines = name.lower().endswith(_LINES_NAMES)
    if start.startswith(b"<") or _XML_AHEAD.search(start[:_STRAY_BYTES]):
        return "xml"
    if start.startswith(b"{"):
        whole = looks_like_json_feed(head) or not (named_lines or _is_row(start, head))
        return "json" if whole else "lines"
    if named_lines:
        return "lines"
    return "json" if start.startswith(b"[") else "unknown"


def _start(head: bytes) -> bytes:
    """Return the head without byte order mark, white space and the zero bytes of wide text."""
    for mark in _MARKS:
        head = head.removeprefix(mark)
    return head.replace(b"\x00", b"").lstrip()


def _is_row(start: bytes, head: bytes) -> bool:
    """Tell whether the first line is a JSON object of its own, as far as `head` shows."""
    line, end, _ = start.partition(b"\n")
    if not end and len(head) >= 8_192:
        return True
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
