"""The form of a text that its copies share."""

from __future__ import annotations

import html
import re
import unicodedata

_MARKS = (
    dict.fromkeys("\u2018\u2019\u201a\u201b\u2032`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    # Invisible: soft hyphen, zero-width spaces and joiners, variation selectors, byte order mark.
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff", "")
)
# A search for the few that there are; str.translate looks every character up, five times as slow.
_MARK = re.compile(f"[{''.join(_MARKS)}]")
_SILENT = re.compile(r"<(script|style)\b|<!--", re.IGNORECASE)
_SILENT_END = {
    name: re.compile(end, re.IGNORECASE)
    for name, end in {"script": r"</script\s*>", "style": r"</style\s*>", "": "-->"}.items()
}
# Tags inside a word or a sentence leave no gap; every other one ends what stood before it.
_INLINE_TAG = re.compile(
    r"</?(?:a|abbr|b|cite|code|em|font|i|mark|s|small|span|strong|sub|sup|u)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
# An ampersand escaped any number of times counts as escaped once, so that few rounds settle all.
_AMPERSANDS = re.compile(r"&(?:(?:amp|#0*38|#x0*26);)+", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});", re.IGNORECASE)
_MOST_ROUNDS = 8

# "… - North Wire", "(Reuters)", "Source: AFP" at the very end: who sent it, not what it says.
_ATTRIBUTION = re.compile(
    r"\s*(?:[-|]\s?[^\s.!?][^.!?\n]{0,38}|\([^()\n]{2,40}\)"
    r"|(?:source|quelle|fuente|fonte|bron|kilde|källa|źródło|zdroj|izvor|kaynak|forrás|lähde"
    r"|источник|джерело|извор|المصدر|出典|来源|來源|출처)s?\s?:[^.\n]{2,40})[.。]?$"
)
_LONGEST_ATTRIBUTION_CHARS = 64
# Whole lines at the end that a publishing system adds; the first is what WordPress puts into feeds.
_TRAILER = re.compile(
    r"the post .{1,300} (?:appeared first on|first appeared on) .{1,120}"
    r"|(?:©|\(c\)|copyright\b).{0,160}"
    r"|(?:all rights reserved|continue reading|read more|read the full (?:story|article)|weiterlesen"
    r"|lire la suite|seguir leyendo|leer más|leia mais|continua a leggere|lees verder|läs mer|les mer"
    r"|læs mere|czytaj więcej|читать далее|читати далі|devam\u0131n\u0131 oku|続きを読む|阅读全文|閱讀全文).{0,20}"
    r"|(?:follow us on|sign up (?:for|to) our|subscribe to our|share this (?:article|story)).{0,120}"
)
# A line of its own at the start, with nothing that ends a sentence.
_BYLINE = re.compile(r"(?:by|von|par|por|door|przez|автор:?|source:) [^.!?。]{2,70}")


def canonical_text(text: str) -> str:
    """Return text as copies of it share it.

    No HTML, NFKC, case folded, one kind of quote, dash and space, nothing invisible, no byline, no
    lines of the publishing system and no attribution at the end. Applying it twice changes nothing.
    """
    settled = _casefolded(settled_text(text))
    lines = [" ".join(line.split()) for line in settled.splitlines()]
    return _without_attribution(" ".join(_own_lines([line for line in lines if line])))


def settled_text(text: str) -> str:
    """Return text in NFKC without HTML, with one kind of quote and dash; case and line breaks stay."""
    for _ in range(_MOST_ROUNDS):
        again = unicodedata.normalize("NFKC", plain_text(text))
        again = _MARK.sub(lambda found: _MARKS[found[0]], again)
        if again == text:
            break
        text = again
    return text


def plain_text(text: str) -> str:
    """Return text without HTML: tags gone, entities replaced until none is left.

    Readers of feeds and files have done so; this is for articles that a program hands over. Line
    breaks stay.
    """
    for _ in range(_MOST_ROUNDS):
        again = _unmarked(text)
        if again == text:
            break
        text = again
    return text


def _casefolded(text: str) -> str:
    # Case folding may undo a composition (NFKC of the folded text is what Unicode calls NFKC_Casefold).
    return unicodedata.normalize("NFKC", text.casefold())


def _unmarked(text: str) -> str:
    if "<" in text:
        text = _INLINE_TAG.sub("", _without_silent(text))
        text = _TAG.sub("\n", text)
    if "&" in text:
        text = _ENTITY.sub(lambda found: html.unescape(found[0]), _AMPERSANDS.sub("&amp;", text))
    return text


def _without_silent(text: str) -> str:
    """Return HTML without scripts, styles and comments, up to the first that is never closed."""
    kept, end = [], 0
    while opening := _SILENT.search(text, end):
        closing = _SILENT_END[(opening[1] or "").lower()].search(text, opening.end())
        if closing is None:
            break
        kept.append(text[end : opening.start()])
        end = closing.end()
    return " ".join([*kept, text[end:]])


def _own_lines(lines: list[str]) -> list[str]:
    """Return lines without bylines at the start and trailers at the end; one line always stays."""
    first, last = 0, len(lines)
    while last - first > 1 and _is_trailer(lines[last - 1]):
        last -= 1
    while last - first > 1 and _BYLINE.fullmatch(lines[first]):
        first += 1
    return lines[first:last]


def _is_trailer(line: str) -> bool:
    return bool(_TRAILER.fullmatch(line) or _ATTRIBUTION.fullmatch(line))


def _without_attribution(line: str) -> str:
    end = len(line)
    while found := _ATTRIBUTION.search(line, max(0, end - _LONGEST_ATTRIBUTION_CHARS), end):
        end = found.start()
    return line[:end]
