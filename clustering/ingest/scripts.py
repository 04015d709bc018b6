"""Which script a text is in, and which languages are written in it."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

# The first word of a character's Unicode name is its script, but for these.
_ALIASES = {
    "CJK": "HAN",
    "IDEOGRAPHIC": "HAN",
    "HIRAGANA": "KANA",
    "KATAKANA": "KANA",
    "KATAKANA-HIRAGANA": "KANA",
}
_NO_SCRIPT = frozenset({"FULLWIDTH", "HALFWIDTH", "MODIFIER", "FEMININE", "MASCULINE", "MICRO"})

#: Languages written in each script but Latin, from CLDR's language and script data.
_WRITTEN_IN = {
    "ARABIC": "ar arz az bal ckb dv fa glk ha ks ku ky kk lrc ms mzn pa pnb prs ps sd skr tg ug ur "
    "uz",
    "ARMENIAN": "hy hyw",
    "BENGALI": "as bn bpy mni sat",
    "CANADIAN": "cr iu oj",
    "CHEROKEE": "chr",
    "CYRILLIC": "ab ady av az ba be bg bs bxr ce cnr crh cu cv gag inh kbd kk krc ku kum ky lez mdf "
    "mhr mk mn myv nog os ro ru rue sah sr tg tk tt tyv udm uk uz",
    "DEVANAGARI": "awa bho brx doi hi kok ks mag mai mr ne new raj sa sat sd",
    "ETHIOPIC": "am gez ti tig",
    "GEORGIAN": "ka xmf",
    "GREEK": "el grc",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HAN": "cdo gan hak ja lzh nan wuu yue zh",
    "HANGUL": "ko",
    "HEBREW": "he lad yi",
    "KANA": "ja",
    "KANNADA": "kn kok tcy",
    "KHMER": "km",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MEETEI": "mni",
    "MONGOLIAN": "mn",
    "MYANMAR": "ksw my mnw shn",
    "NKO": "nqo",
    "OL": "sat",
    "ORIYA": "or",
    "SINHALA": "si",
    "SYRIAC": "aii syr",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAANA": "dv",
    "THAI": "th",
    "TIBETAN": "bo dz",
    "TIFINAGH": "ber kab shi tzm zgh",
}
#: Of those, the languages that are written in Latin letters as well.
_LATIN_TOO = "az ber bs cnr crh gag ha iu kab kk kok ku mni ms ro sat shi sr tk tt tzm ug uz zgh"
_SCRIPTS = {
    language: frozenset(
        {script for script, listed in _WRITTEN_IN.items() if language in listed.split()}
        | ({"LATIN"} if language in _LATIN_TOO.split() else set())
    )
    for languages in _WRITTEN_IN.values()
    for language in languages.split()
}
_LATIN_ONLY = frozenset({"LATIN"})


@dataclass(frozen=True, slots=True)
class Letters:
    """The letters of a text, counted by script.

    Attributes:
        counts: letters by script, the name as in Unicode (`BENGALI`); HAN, KANA and HANGUL for
            East Asia.
        total: letters of any script.
    """

    counts: Counter[str]
    total: int

    def share(self, *scripts: str) -> float:
        """Return the share of letters that are in one of `scripts`, 0 to 1."""
        return sum(self.counts[script] for script in scripts) / self.total if self.total else 0.0

    def dominant(self, least_share: float = 0.6) -> str | None:
        """Return the script of more than `least_share` of the letters, if there is one.

        Japanese counts as KANA, as its Chinese characters do not tell it from Chinese.
        """
        counts = self.counts
        if self.share("KANA") >= 0.05:
            counts = counts + Counter({"KANA": counts["HAN"], "HAN": -counts["HAN"]})
        script, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
        return script if count > least_share * self.total else None

    def leading(self) -> str | None:
        """Return the script that the text is written in, names in Latin letters set aside.

        A Lao headline may have more letters in its English names than in its own words, as most
        Lao vowels are no letters to Unicode; the reverse does not happen.
        """
        own = Counter({script: n for script, n in self.counts.items() if script != "LATIN"})
        other = Letters(own, own.total())
        return other.dominant() if other.total > 0.3 * self.total else self.dominant()


@lru_cache(maxsize=8192)
def script_of(character: str) -> str | None:
    """Return the script of a letter, None for what is no letter."""
    if not character.isalpha():
        return None
    word = unicodedata.name(character, "").partition(" ")[0]
    return None if not word or word in _NO_SCRIPT else _ALIASES.get(word, word)


def count_letters(text: str) -> Letters:
    """Count the letters of `text` by script."""
    counts = Counter(script for script in map(script_of, text) if script is not None)
    return Letters(counts, counts.total())


def scripts_for(language: str) -> frozenset[str]:
    """Return the scripts that a language (`sr`) is written in; Latin where nothing is known."""
    return _SCRIPTS.get(language, _LATIN_ONLY)
