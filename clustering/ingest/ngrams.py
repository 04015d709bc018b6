"""What langdetect's tables of letter sequences say of a text.

langdetect gives every text to one of the 55 languages it knows, mostly at a probability of
0.9999: Azerbaijani comes out as Turkish, Icelandic as Norwegian. What gives them away is that
many of their three-letter sequences never occur in the neighbour; `is_at_home` counts those.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

# Share of a text's three-letter sequences that langdetect knows in the text's language, words
# that begin with a capital left out (names look foreign everywhere). Own measurement: NTREX-128,
# title and 200 characters of body, 73 documents each.
# fmt: off
_KNOWN_SHARE = {
    "af": 0.89, "ar": 0.75, "bg": 0.83, "ca": 0.99, "cs": 0.78, "cy": 0.99, "da": 0.86, "de": 0.89,
    "en": 0.89, "es": 0.90, "et": 0.99, "fa": 0.78, "fi": 0.90, "fr": 0.90, "hi": 0.68, "hr": 0.85,
    "hu": 0.79, "id": 0.93, "it": 0.92, "lt": 0.97, "lv": 0.97, "mk": 0.87, "mr": 0.67, "ne": 0.67,
    "nl": 0.87, "no": 0.88, "pl": 0.82, "pt": 0.86, "ro": 0.99, "ru": 0.81, "sk": 0.77, "sl": 0.98,
    "so": 0.91, "sq": 0.88, "sv": 0.85, "sw": 0.86, "tl": 0.91, "tr": 0.85, "uk": 0.78, "ur": 0.75,
    "vi": 0.98,
}
# fmt: on
_UNMEASURED = 0.8
# Headlines with few words in small letters are judged with their names.
_COST_OF_NAMES = 0.08
_SPREAD = 0.02
_MOST_DEVIATIONS = 3.0
_FEWEST_SEQUENCES = 20
# A sequence that a language lacks counts as one in a million.
_NEVER = 1e-6


@cache
def _tables() -> Any:  # noqa: ANN401 - langdetect has no types
    """Load langdetect's profiles (0.7 s, 60 MiB), in a factory of our own with a fixed seed."""
    from langdetect.detector_factory import (  # noqa: PLC0415 - loaded when first needed
        PROFILES_DIRECTORY,
        DetectorFactory,
    )

    factory = DetectorFactory()
    factory.load_profile(PROFILES_DIRECTORY)
    factory.set_seed(0)
    return factory


def likeliest(text: str) -> tuple[str, float] | None:
    """Return langdetect's first choice, its own code (`zh-cn`, `no`), and the probability.

    The same text always gets the same answer: the detector draws from a generator of its own,
    seeded with 0.
    """
    from langdetect.lang_detect_exception import (  # noqa: PLC0415 - as above
        LangDetectException,
    )

    detector = _tables().create()
    detector.append(text)
    try:
        found = detector.get_probabilities()
    except LangDetectException:
        return None
    return (found[0].lang, found[0].prob) if found else None


@lru_cache(maxsize=8192)
def _plain(character: str) -> str:
    """Return the character as langdetect's tables spell it."""
    from langdetect.utils.ngram import NGram  # noqa: PLC0415 - as above

    return str(NGram.normalize(character))


def _sequences(words: list[str]) -> Iterator[str]:
    """Give the three-letter sequences of `words`, each word framed by spaces."""
    for word in words:
        framed = f" {''.join(map(_plain, word))} "
        for start in range(len(framed) - 2):
            if framed[start + 1] != " ":
                yield framed[start : start + 3]


def known_share(words: list[str], language: str) -> tuple[float, int]:
    """Return the share of the words' sequences that `language` has, 0 to 1, and their number."""
    tables = _tables()
    column = tables.langlist.index(language)
    nothing = [0.0] * len(tables.langlist)
    sequences = list(_sequences(words))
    known = sum(tables.word_lang_prob_map.get(each, nothing)[column] > 0 for each in sequences)
    return known / max(1, len(sequences)), len(sequences)


def is_at_home(text: str, language: str) -> bool:
    """Tell whether `text` has no more foreign sequences than texts in `language` do.

    Args:
        text: one text.
        language: langdetect's code.
    """
    words = text.split()
    usual = _KNOWN_SHARE.get(language, _UNMEASURED)
    share, count = known_share([word for word in words if not word[:1].isupper()], language)
    if count < _FEWEST_SEQUENCES:
        share, count = known_share(words, language)
        usual -= _COST_OF_NAMES
    if not count:
        return False
    deviation = math.sqrt(usual * (1 - usual) / count + _SPREAD**2)
    return usual - share <= _MOST_DEVIATIONS * deviation


def fluency(text: str) -> tuple[float, int]:
    """Return how well the letters beyond ASCII fit the language that the text seems to be in.

    Made to compare readings of the same bytes in several encodings: the right one scores highest.

    Returns:
        Mean natural logarithm of the relative frequency of each three-letter sequence with a
        letter beyond ASCII (-14 to -5), and the number of sequences.
    """
    found = likeliest(text)
    tables = _tables()
    foreign = [
        each
        for each in _sequences([word for word in text.split() if not word.isascii()])
        if not each.isascii()
    ]
    if found is None or not foreign:
        return math.log(_NEVER), 0
    column = tables.langlist.index(found[0])
    nothing = [0.0] * len(tables.langlist)
    logs = (
        math.log(tables.word_lang_prob_map.get(each, nothing)[column] + _NEVER) for each in foreign
    )
    return math.fsum(logs) / len(foreign), len(foreign)
