"""Text without what no database, index or encoder should ever see."""

from __future__ import annotations

import re

# C0 and C1 controls that are no white space, lone surrogates, non-characters, the byte order
# mark. Zero-width space and joiners stay: Thai, Khmer, Persian and Indic text needs them.
_UNWANTED = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff]"
)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_line(text: str) -> str:
    """Return `text` on one line, with controls dropped and runs of white space made one space."""
    return " ".join(_UNWANTED.sub("", text).split())


def clean_text(text: str) -> str:
    """Return `text` with controls dropped and white space collapsed; line breaks stay, one each."""
    lines = (" ".join(line.split()) for line in _UNWANTED.sub("", text).splitlines())
    return "\n".join(line for line in lines if line)


def cut(text: str, most_chars: int) -> str:
    """Return at most `most_chars` characters of `text`, without white space at the end."""
    return text if len(text) <= most_chars else text[:most_chars].rstrip()


def unstorable(text: str) -> str | None:
    """Name the first thing in `text` that PostgreSQL cannot store, or None."""
    found = _UNSTORABLE.search(text)
    if found is None:
        return None
    return "a NUL character" if found[0] == "\0" else "a lone surrogate (half a character)"
