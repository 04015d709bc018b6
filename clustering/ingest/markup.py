"""HTML to plain text; text that was plain before passes unharmed."""

from __future__ import annotations

import html as entities
import re
from itertools import accumulate

from clustering.ingest.cleaning import clean_text

_NAMES = (
    "a|abbr|article|aside|b|big|blockquote|body|center|cite|code|dd|del|div|dl|dt|em|figcaption|"
    "figure|font|footer|h[1-6]|header|html|i|iframe|ins|label|li|main|mark|ol|p|picture|pre|q|s|"
    "script|section|small|span|strong|style|sub|sup|table|tbody|td|tfoot|th|thead|time|tr|tt|u|ul|"
    "video"
)
# Signs that nobody writes by accident: a closing tag, a tag with an attribute, a void tag, or the
# paragraph. A lone `<b>` is left alone: somebody may be writing about HTML.
_TAGGED = re.compile(
    rf"</(?:{_NAMES})\s*>"
    rf"|<(?:{_NAMES}|img|source|embed|object|link|meta)\s+[a-z:-]+\s*=\s*[\"'\w]"
    r"|<(?:br|hr|p)\s*/?>|<!--|<!\[CDATA\[",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_ANY_TAG = re.compile(r"<[^<>]*>")
_SILENT = ("script", "style", "noscript", "template", "head", "title", "svg", "math", "iframe")
_BLOCKS = (
    "address,article,aside,blockquote,br,center,dd,details,div,dl,dt,fieldset,figcaption,figure,"
    "footer,form,h1,h2,h3,h4,h5,h6,header,hr,li,main,nav,ol,option,p,pre,section,summary,table,"
    "td,th,tr,ul"
)
# The parser's time grows with the square of the depth: 20,000 levels take 0.8 s, 1,000 take
# 1.5 ms (selectolax 1.0.2, own measurement).
_MOST_LEVELS = 1_000
_NESTING_TAG = re.compile(r"<(/?)(?!(?:br|hr|img|input|wbr|p)\b)[a-zA-Z]", re.IGNORECASE)


def text_of(value: str, *, html: bool = False) -> str:
    """Return the plain text of `value`, with line breaks where HTML blocks begin and end.

    Args:
        value: plain text or HTML, possibly escaped once too often.
        html: True if the source declares HTML; otherwise tags are looked for.

    Returns:
        Clean text. `a < b`, `AT&T` and a lone `<b>` come through as they are.
    """
    if "<" not in value and "&" not in value:
        return clean_text(value)
    tagged = _TAGGED.search(value) is not None
    text = _flatten(value) if tagged or html else _settle(value)
    if not tagged and _TAGGED.search(text):
        text = _flatten(text)
    return clean_text(_settle(text))


def _settle(text: str) -> str:
    """Replace entities that end in a semicolon (`?a=1&copy=2` is an address, not a sign)."""
    return _ENTITY.sub(lambda found: entities.unescape(found[0]), text) if "&" in text else text


def _depth(html: str) -> int:
    """Return an upper bound of how deep the elements of `html` nest."""
    steps = (-1 if slash else 1 for slash in _NESTING_TAG.findall(html))
    return max(accumulate(steps, lambda depth, step: max(0, depth + step)), default=0)


def _flatten(html: str) -> str:
    """Return the text of an HTML fragment as a browser's user would read it."""
    if _depth(html) > _MOST_LEVELS:
        return entities.unescape(_ANY_TAG.sub(" ", html))
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - loaded when first needed

    visible = html.replace("<![CDATA[", "").replace("]]>", "")
    tree = LexborHTMLParser(" ".join(visible.split()))
    tree.strip_tags(list(_SILENT))
    for node in tree.css(_BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    return tree.body.text() if tree.body is not None else ""
