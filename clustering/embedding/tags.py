"""Finds the language of a table that a BCP 47 tag means, however it was written.

Feeds write `pt_BR`, `zh-CN`, `iw` or `sr-Latn-RS`, detectors write `zh-cn` and `tl`. The table is
small, so that the nearest entry is found by rules: the tag itself, then with fewer parts, then
under the code that replaced a withdrawn one, then a close relative in the same script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# Withdrawn codes, and codes of a member where tables name the whole (IANA subtag registry).
SAME_LANGUAGE = {
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "jw": "jv",
    "mo": "ro",
    "tl": "fil",
    "fil": "tl",
    "no": "nb",
    "nb": "no",
    "cmn": "zh",
    "arb": "ar",
    "arz": "ar",
    "pes": "fa",
    "prs": "fa",
    "zsm": "ms",
    "swh": "sw",
    "kmr": "ku",
    "khk": "mn",
    "azj": "az",
    "uzn": "uz",
    "lvs": "lv",
    "ekk": "et",
    "als": "sq",
    "npi": "ne",
    "pbt": "ps",
}
# Written so much alike that the offset of the one serves for the other.
RELATIVES = {
    "nn": "nb",
    "sh": "hr",
    "cnr": "hr",
    "sr-latn": "hr",
    "nds": "de",
    "lb": "de",
    "gsw": "de",
    "ast": "es",
    "fo": "is",
    "wuu": "zh-hans",
    "nan": "zh-hant",
    "hak": "zh-hant",
    "zh-yue": "yue",
}
# The script that a Chinese tag means where it names a region only, or nothing.
CHINESE = {
    "zh": "zh-hans",
    "zh-cn": "zh-hans",
    "zh-sg": "zh-hans",
    "zh-my": "zh-hans",
    "zh-tw": "zh-hant",
    "zh-hk": "zh-hant",
    "zh-mo": "zh-hant",
}


def nearest_language(tag: str, available: Collection[str]) -> str | None:
    """Return the entry of a table that serves for a language tag.

    Args:
        tag: a BCP 47 tag; case and `_` for `-` do not matter.
        available: the table's own tags.

    Returns:
        An element of `available`, or None for `und`, an empty tag, or a language that has no
        entry. Where a language has entries by region or script only, the first of them in
        alphabetical order.
    """
    known = {_plain(name): name for name in available}
    wanted = _plain(tag)
    for candidate in _candidates(wanted):
        if candidate in known:
            return known[candidate]
    base = wanted.split("-")[0]
    return next((known[name] for name in sorted(known) if name.split("-")[0] == base), None)


def _plain(tag: str) -> str:
    return tag.strip().replace("_", "-").lower()


def _candidates(tag: str) -> Iterator[str]:
    """Yield what to look for, nearest first."""
    language, *rest = tag.split("-")
    for spelling in ([language, *rest], [SAME_LANGUAGE.get(language, language), *rest]):
        for length in range(len(spelling), 0, -1):
            name = "-".join(spelling[:length])
            yield name
            yield from (table[name] for table in (CHINESE, RELATIVES) if name in table)
