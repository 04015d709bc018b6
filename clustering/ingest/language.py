"""The language of an article: declared, told by script, or detected; never guessed."""

from __future__ import annotations

import re

from clustering.ingest import ngrams
from clustering.ingest.scripts import Letters, count_letters, scripts_for
from clustering.ingest.tags import normalise_tag, primary

#: What is not known (RFC 5646, section 4.1, rule 5).
UNKNOWN = ("und", 0.0)

_BODY_CHARS = 300
# Below this many letters a script proves nothing against a declared language: "NHK" in a
# Japanese feed. East Asian letters carry more each.
_FEWEST_LETTERS = 12
_FEWEST_EAST_ASIAN = 4
_EAST_ASIAN = ("HAN", "KANA", "HANGUL")

_LEAST_PROBABILITY = 0.9
# langdetect gives "Ok" to Afrikaans at 0.9999: fewer letters than these tell nothing.
_FEWEST_DETECTED = 20
_BY_SCRIPT = 0.99
# Scripts in which (nearly) all news is in one language.
_ONE_LANGUAGE = {
    "ARMENIAN": "hy",
    "BENGALI": "bn",
    "ETHIOPIC": "am",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HANGUL": "ko",
    "HEBREW": "he",
    "KANA": "ja",
    "KANNADA": "kn",
    "KHMER": "km",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MYANMAR": "my",
    "ORIYA": "or",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAANA": "dv",
    "THAI": "th",
}
# Letters that only one of a script's languages uses; checked before anything is detected. In
# NTREX-128 none of them occurs in another of the 81 languages.
_TELLING_LETTERS = {
    "as": "ৰৱ",
    "az": "əƏ",
    "be": "ўЎ",
    "is": "þÞ",
    "kk": "ұҰ",
    "mt": "ħĦ",
    "ps": "ښړځ",
    "sr": "ћђЋЂ",
    "ti": "ኣቐ",
    "yi": "װױײ",
}
_LEAST_TELLING_SHARE = 0.005
# Frequent words that a language has and its look-alike (as langdetect answers) has not.
_GALICIAN = "coa despois dixo dunha máis mentres nunha súa unha"
_MALAY = (
    "ahad bahawa beliau berlaku boleh eropah ialah isnin jabatan jumaat kerana khamis lelaki polis "
    "selepas semasa syarikat"
)
_SERBIAN = "због је као које који након су суботу ће"  # noqa: RUF001 - Serbian, in its script
_RIVALS = {
    "es": ("gl", _GALICIAN),
    "fa": ("ps", "په چې"),
    "id": ("ms", _MALAY),
    "mk": ("sr", _SERBIAN),
    "pt": ("gl", _GALICIAN),
}
_WORD = re.compile(r"[^\W\d_]+")
_CODES = {"no": "nb", "tl": "fil"}
_CANTONESE = frozenset("嘅咗喺嚟佢唔冇啲嘢乜哋嗰")


def settle_language(declared: str | None, title: str, body: str) -> tuple[str, float]:
    """Return an article's language and how sure that is.

    A well-formed declared tag is believed unless the script of the text contradicts it (an
    `en-US` feed in Bengali script). Else the language is told by script where the script has
    one language, or detected with langdetect, and kept only if its probability is 0.9 or more
    and the text has no more unknown letter sequences than texts in that language have.

    Args:
        declared: tag as the source states it, in any spelling; None for none.
        title: plain text.
        body: plain text; the first 300 characters of both are looked at.

    Returns:
        BCP 47 tag and confidence: 1.0 declared, 0.99 by script, langdetect's probability if
        detected, `("und", 0.0)` if it cannot be told. Chinese is `zh-Hans`, `zh-Hant` or `yue`,
        Serbian in Latin letters `sr-Latn`.
    """
    text = f"{title[:_BODY_CHARS]}\n{body[:_BODY_CHARS]}"
    letters = count_letters(text)
    tag = normalise_tag(declared)
    if tag is not None and not _contradicted(tag, letters):
        return _in_its_script(tag, text, letters), 1.0
    return _detect(text, letters)


def _in_its_script(tag: str, text: str, letters: Letters) -> str:
    """Return a tag that says which script a text is in, where that tells one language's texts apart."""
    if tag == "zh":
        return _chinese(text) or "zh-Hans"
    # A model sees Serbian in Latin letters as Croatian: the tag keeps its offset apart.
    return "sr-Latn" if tag == "sr" and letters.dominant() == "LATIN" else tag


def _contradicted(tag: str, letters: Letters) -> bool:
    """Tell whether the text is in a script that the declared language is not written in."""
    script = letters.dominant()
    fewest = _FEWEST_EAST_ASIAN if script in _EAST_ASIAN else _FEWEST_LETTERS
    if script is None or letters.total < fewest:
        return False
    spoken = primary(tag)
    return script not in scripts_for(spoken) and not (spoken == "ja" and script == "HAN")


def _detect(text: str, letters: Letters) -> tuple[str, float]:
    """Tell the language from the text alone."""
    script = letters.leading()
    if script is None:
        return UNKNOWN
    told = _by_letters(text, script, letters.total) or _ONE_LANGUAGE.get(script)
    if script == "HAN":
        told = _chinese(text)
    if told is not None:
        return told, _BY_SCRIPT
    return UNKNOWN if script == "HAN" else _by_sequences(text, script)


def _by_letters(text: str, script: str, total: int) -> str | None:
    """Name the language whose own letters occur too often to be a name's spelling."""
    for language, telling in _TELLING_LETTERS.items():
        count = sum(map(text.count, telling))
        if count >= 2 and count >= _LEAST_TELLING_SHARE * total and script in scripts_for(language):
            return language
    return None


def _by_sequences(text: str, script: str) -> tuple[str, float]:
    """Ask langdetect, and believe it only where the text is at home in its answer."""
    if sum(map(str.isalpha, text)) < _FEWEST_DETECTED:
        return UNKNOWN
    text = _without_shouting(text)
    found = ngrams.likeliest(text)
    if found is None or found[1] < _LEAST_PROBABILITY:
        return UNKNOWN
    code, probability = found
    language = _CODES.get(code, code)
    if script not in scripts_for(language) or not ngrams.is_at_home(text, code):
        return UNKNOWN
    return _rival(text, language), probability


def _without_shouting(text: str) -> str:
    """Return text in capitals in small letters: langdetect skips words in capitals."""
    return text.lower() if text.isupper() else text


def _rival(text: str, language: str) -> str:
    """Return the look-alike of `language` whose words the text uses, else `language`."""
    rival, words = _RIVALS.get(language, (language, ""))
    return rival if not set(words.split()).isdisjoint(_WORD.findall(text.lower())) else language


def _chinese(text: str) -> str | None:
    """Tell simplified, traditional and Cantonese from Japanese in Chinese characters.

    Each national character set holds the characters of its own standard, so that a character
    which only one of them has tells the standard apart.
    """
    characters = [each for each in text if "\u4e00" <= each <= "\u9fff"]
    if sum(each in _CANTONESE for each in characters) >= 2:
        return "yue"
    simplified = sum(_only_in(each, "gb2312", ("big5",)) for each in characters)
    traditional = sum(_only_in(each, "big5", ("gb2312",)) for each in characters)
    japanese = sum(_only_in(each, "shift_jis", ("gb2312", "big5")) for each in characters)
    if japanese and simplified + traditional <= japanese:
        return None
    if simplified == traditional:
        return None
    return "zh-Hans" if simplified > traditional else "zh-Hant"


def _only_in(character: str, own: str, others: tuple[str, ...]) -> bool:
    """Tell whether the character set `own` has a character and none of `others` has it."""
    return _has(character, own) and not any(_has(character, other) for other in others)


def _has(character: str, charset: str) -> bool:
    try:
        character.encode(charset)
    except UnicodeEncodeError:
        return False
    return True
