"""OPML lists of feeds, nested as deep as one likes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from clustering.ingest.cleaning import clean_line
from clustering.ingest.tags import normalise_tag
from clustering.ingest.trouble import Refused

if TYPE_CHECKING:
    from clustering.ingest.safexml import Document

_STRAY_AMPERSAND = re.compile(r"&(?!#?\w{1,31};)")


@dataclass(frozen=True, slots=True)
class Outline:
    """A feed that a list names.

    Attributes:
        address: `xmlUrl` as it is written: absolute, or relative to the list.
        title: human name.
        language: tag that the list states for the feed.
    """

    address: str
    title: str | None
    language: str | None


def read_opml(document: Document) -> list[Outline]:
    """Return the feeds of a list in its order, each address once.

    Args:
        document: as `safexml.document_of` returns it, so without entity declarations.

    Raises:
        Refused: if it is ill-formed or names no feed.
    """
    outlines: dict[str, Outline] = {}
    for element in _parse(document.text).iter():
        outline = _outline({key.lower(): clean_line(text) for key, text in element.items()})
        if outline is not None:
            outlines.setdefault(outline.address, outline)
    if not outlines:
        raise Refused("an OPML list that names no feed", "give its outlines an xmlUrl")
    return list(outlines.values())


def _parse(text: str) -> ET.Element:
    """Parse, if need be with the ampersands mended that addresses are often written with."""
    try:
        return ET.fromstring(text)  # noqa: S314 - no entities are left, see safexml
    except ET.ParseError:
        pass
    try:
        return ET.fromstring(_STRAY_AMPERSAND.sub("&amp;", text))  # noqa: S314 - as above
    except ET.ParseError as error:
        raise Refused(f"an ill-formed OPML list ({error})", "mend the file") from None


def _outline(attributes: dict[str, str]) -> Outline | None:
    """Return the feed of an outline element, None if it names none."""
    address = attributes.get("xmlurl")
    if not address and attributes.get("type", "").lower() in {"rss", "atom"}:
        address = attributes.get("url")
    if not address:
        return None
    title = attributes.get("title") or attributes.get("text") or None
    return Outline(address, title, normalise_tag(attributes.get("language")))
