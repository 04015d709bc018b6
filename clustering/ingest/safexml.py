"""XML text that a lenient parser can be given without fear.

feedparser's own time grows with the square of some input (white space before the root, the length
of an author), its memory with every attribute and open tag, and it expands entities of the
document's own. So a document is taken down to its root element here, references to impossible
characters are dropped, entities are settled, and what only an attack has is refused.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from clustering.ingest.trouble import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PROLOG_PARTS = (("<?", "?>"), ("<!--", "-->"), ("<!DOCTYPE", ">"))
_SUBSET_END = re.compile(r"\]\s*>")
_ROOT = re.compile(r"<(?P<prefix>[A-Za-z_][\w.-]*:)?(?P<name>[A-Za-z_][\w.-]*)")
# The root of a feed or list, after the HTML of an error message that a server puts before it.
_LATE_ROOT = re.compile(r"<(?P<prefix>[A-Za-z_][\w.-]*:)?(?P<name>rss|feed|opml|RDF)(?=[\s>])")
_STRAY_CHARS = 4_096
_ENTITY = re.compile(
    r"<!ENTITY\s+(?P<parameter>%)?\s*(?P<name>[\w.:-]+)\s+(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'"
    r"|(?P<external>SYSTEM|PUBLIC))"
)
_REFERENCE = re.compile(r"&#(?:\d+|[xX][0-9a-fA-F]+);?|&[A-Za-z][\w.:-]{0,63};")
_MARKUP_SIGNS = frozenset("<>&\"'")
_MOST_ENTITY_CHARS = 64

_TAG = re.compile(r"<(/?)[A-Za-z_][^<>]*?(/?)>")
_HOARD = re.compile(r"<[A-Za-z](?:[^<>=\s]*[=\s]){20000}")
_MOST_LEVELS = 50_000
_BYLINE = "author|creator|managingeditor|webmaster|publisher|contributor"
_BYLINE_START = re.compile(rf"<(?:[\w.-]+:)?(?:{_BYLINE})(?=[\s/>])[^<>]*>", re.IGNORECASE)
_BYLINE_END = re.compile(rf"</(?:[\w.-]+:)?(?:{_BYLINE})\s*>", re.IGNORECASE)
_MOST_BYLINE_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Document:
    """An XML document without its prolog.

    Attributes:
        root: local name of the root element, in small letters.
        text: from the root element on; no character or entity in it that XML does not know.
    """

    root: str
    text: str


def document_of(text: str) -> Document:
    """Take an XML document down to its root element.

    Raises:
        Refused: if there is no element, or the document is made to exhaust its reader.
    """
    text = _ILLEGAL.sub("", text)
    start, declared = _root_start(text)
    found = _LATE_ROOT.search(text, start, start + _STRAY_CHARS) or _ROOT.match(text, start)
    if found is None:
        raise Refused("not XML (no element in it)", "check that this is a feed")
    body = _settle_references(text[found.start() :], declared)
    _refuse_hoards(body)
    return Document(found["name"].lower(), body)


def _root_start(text: str) -> tuple[int, dict[str, str]]:
    """Return where the root element starts, and the entities that are declared before it.

    Stray text before the root (a PHP warning, say) is passed over.
    """
    at, declared = 0, dict[str, str]()
    last = {closing: text.rfind(closing) for _, closing in _PROLOG_PARTS}
    while (at := text.find("<", at)) >= 0 and _ROOT.match(text, at) is None:
        end = _end_of_prolog_part(text, at, last)
        if text.startswith("<!DOCTYPE", at):
            declared |= _declared_entities(text[at:end])
            last[">"] = -1  # a document has one; searching the ends of thousands takes for ever
        at = end
    return (at if at >= 0 else len(text)), declared


def _end_of_prolog_part(text: str, at: int, last: Mapping[str, int]) -> int:
    """Return where the instruction, comment or declaration at `at` ends.

    `last` says where each closing occurs last: one that is never closed is not searched for, as
    thousands of them would take for ever.
    """
    closing = next((end for start, end in _PROLOG_PARTS if text.startswith(start, at)), None)
    if closing is None or last[closing] < at:
        return at + 1
    end = text.find(closing, at) + len(closing)
    if closing == ">" and "[" in text[at:end]:
        subset = _SUBSET_END.search(text, at)
        return subset.end() if subset else end
    return end


def _declared_entities(doctype: str) -> dict[str, str]:
    """Return the entities of a document type declaration, by name.

    Raises:
        Refused: if one is external, made of others, or long.
    """
    entities = {}
    for found in _ENTITY.finditer(doctype):
        value = html.unescape(found["double"] or found["single"] or "")
        if found["parameter"] or found["external"] or "&" in value:
            raise Refused(
                f"it declares entities made of others or of files ({found['name'][:40]})",
                "leave this source out: no feed needs them, attacks do",
            )
        if len(value) > _MOST_ENTITY_CHARS:
            raise Refused(
                f"it declares an entity of more than {_MOST_ENTITY_CHARS} characters",
                "leave this source out, or expand its entities",
            )
        entities[found["name"]] = value
    return entities


def _settle_references(text: str, declared: dict[str, str]) -> str:
    """Replace named entities by their characters, drop references to no character."""

    def settle(found: re.Match[str]) -> str:
        reference = found[0]
        if reference.startswith("&#"):
            return reference if _is_character(reference[2:].rstrip(";")) else ""
        value = declared.get(reference[1:-1]) or html.unescape(reference)
        return reference if value == reference or _MARKUP_SIGNS & set(value) else value

    return _REFERENCE.sub(settle, text) if "&" in text else text


def _is_character(digits: str) -> bool:
    """Tell whether a character reference (`65`, `x41`) is a character that XML allows."""
    if len(digits) > 8:
        return False
    code = int(digits[1:], 16) if digits[0] in "xX" else int(digits)
    return code <= 0x10FFFF and _ILLEGAL.match(chr(code)) is None


def _refuse_hoards(text: str) -> None:
    """Refuse what costs feedparser memory or time out of all proportion."""
    if _HOARD.search(text):
        raise Refused("a tag with thousands of attributes", "leave this source out")
    steps = (1 - 2 * bool(close) - bool(empty) for close, empty in _TAG.findall(text))
    if any(depth > _MOST_LEVELS for depth in accumulate(steps)):
        raise Refused(f"its tags nest deeper than {_MOST_LEVELS:,} levels", "leave this source out")
    for byline in _BYLINE_START.finditer(text):
        if byline[0].endswith("/>"):
            continue
        if _BYLINE_END.search(text, byline.end(), byline.end() + _MOST_BYLINE_CHARS) is None:
            raise Refused(
                f"an author of more than {_MOST_BYLINE_CHARS:,} characters", "leave this source out"
            )


def cut_after(document: Document, element: re.Pattern[str], most: int) -> tuple[str, int]:
    """Cut a document before its element number `most` + 1, and close what is open.

    Args:
        document: as `document_of` returns it.
        element: matches the start of each element that is counted.
        most: number of elements to leave.

    Returns:
        The text, and how many elements were cut off.
    """
    starts = element.finditer(document.text)
    first = next(islice(starts, most, None), None)
    if first is None:
        return document.text, 0
    name = _ROOT.match(document.text)
    root = f"{name['prefix'] or ''}{name['name']}" if name else document.root
    closing = "</channel></rss>" if document.root == "rss" else f"</{root}>"
    return document.text[: first.start()] + closing, 1 + sum(1 for _ in starts)
