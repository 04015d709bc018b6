"""Bytes of a feed to text, whatever encoding its prolog claims.

A false claim is common: a site moves to UTF-8 and keeps its prolog, or a proxy adds a charset.
Three witnesses are heard. UTF-8 proves itself, as text in another encoding is hardly ever valid
UTF-8. Else charset-normalizer names the encodings in which the bytes make sense, and of those and
the declared ones that reading is taken which is most fluent (`ngrams.fluency`): the letter
sequences beyond ASCII are those of a language. The declared encoding wins unless another one is
clearly better, so that languages without a profile are safe.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.ingest import ngrams
from clustering.ingest.trouble import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf_32"),
    (codecs.BOM_UTF32_BE, "utf_32"),
    (codecs.BOM_UTF8, "utf_8_sig"),
    (codecs.BOM_UTF16_LE, "utf_16"),
    (codecs.BOM_UTF16_BE, "utf_16"),
)
# `<` in encodings of two and four bytes a character (XML 1.0, appendix F.1).
_WIDE = (
    (b"\x00\x00\x00<", "utf_32_be"),
    (b"<\x00\x00\x00", "utf_32_le"),
    (b"\x00<", "utf_16_be"),
    (b"<\x00", "utf_16_le"),
)
_PROLOG = re.compile(rb"\A\s*<\?xml[^>]{0,200}?\bencoding\s*=\s*[\"']\s*([^\"'>]{1,40}?)\s*[\"']")
# What browsers read for a label: the superset that everybody's software writes under the old name
# (WHATWG Encoding Standard, section 4.2).
_SUPERSETS = {
    "ascii": "cp1252",
    "iso8859_1": "cp1252",
    "iso8859_9": "cp1254",
    "iso8859_11": "cp874",
    "tis_620": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
}
# Lead bytes of the frequent characters, punctuation and kana: each of these sets is ordered by
# frequency, level 1 first. Text in another encoding falls anywhere.
_COMMON = {
    "cp932": ((0x81, 0x83), (0x88, 0x97)),
    "euc_jp": ((0xA1, 0xA1), (0xA4, 0xA5), (0xB0, 0xCF)),
    "cp949": ((0xA1, 0xA1), (0xB0, 0xC8)),
    "gb18030": ((0xA1, 0xA1), (0xA3, 0xA3), (0xB0, 0xD7)),
    "big5hkscs": ((0xA1, 0xA1), (0xA4, 0xC6)),
}
_KANA = {"cp932": (0x82, 0x83), "euc_jp": (0xA4, 0xA5)}
_LEAST_KANA = 0.05
#: Encodings that are looked for where the declared one is false. Of two that read the same text
#: equally well the first is taken: the windows code pages are what is written in practice.
# fmt: off
_SOUGHT = (
    "cp1252", "cp1251", "cp1250", "koi8_r", "koi8_u", "cp932", "euc_jp", "cp949", "gb18030",
    "big5hkscs", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874",
    "iso8859_2", "iso8859_5", "iso8859_6", "iso8859_7", "iso8859_13", "cp866",
)
# fmt: on
_SHOWN = {
    "cp932": "shift_jis",
    "cp949": "euc-kr",
    "big5hkscs": "big5",
    "utf_8": "utf-8",
    "cp874": "windows-874",
    "cp866": "ibm866",
    "iso2022_jp_ext": "iso-2022-jp",
}
# What XML may be in without saying so: wide encodings say it by their first bytes.
_SELF_EVIDENT = frozenset({"utf_8", "utf_16", "utf_32"})
_SAMPLE_BYTES = 65_536
_FLUENCY_CHARS = 3_000
# Scores of text that is nothing and of text that is certainly some language.
_RARE, _FLUENT = -14.0, -6.0
# The declared encoding is left only for one that is this much more fluent. Own measurement on
# NTREX-128 in 46 pairs of language and encoding: true declarations are never overruled (326 of
# 326 documents; at 0.15 one headline is). What slips through are code pages that differ in a few
# letters (windows-1250 declared as windows-1252: 20 of 500 documents).
_TRUST = 0.3
# Below this, no language was recognised (right readings score -10.5 to -6 on 100 characters).
_LEAST_FLUENCY = -11.5
_FEWEST_SEQUENCES = 8
# So many good characters for each broken one: a headline that was cut inside a character.
_TOLERATED = 20
_WORD = re.compile(r"[^\W\d_]+")
# At most two letters in a row beyond ASCII, and ASCII letters around them.
_ACCENTED = re.compile(
    r"(?=.*[a-zA-Z])[à-öø-ÿÀ-ÖØ-ÞŸœŒšŠžŽß]{0,2}"
    r"(?:[a-zA-Z]+[à-öø-ÿÀ-ÖØ-ÞŸœŒšŠžŽß]{1,2})*[a-zA-Z]*"
    r"|[àáâäèéêëìíîïòóôöùúûüÀÁÂÄÈÉÊËÌÍÎÏÒÓÔÖÙÚÛÜ]"
)
_USUAL_SIGNS = frozenset("‘’‚“”„–—…•€£©®™°«»¿¡§\u00a0\u00ad")  # noqa: RUF001 - meant as they are
# What no language writes: a letter of another script inside a word, a capital after a small
# letter in Cyrillic, four accented letters in a row, a sign between letters, a control.
_ODD = re.compile(
    r"(?<=[a-zA-Z])[\u0370-\u06ff]|[\u0370-\u06ff](?=[a-zA-Z])"
    r"|(?<=[\u0430-\u045f])[\u0400-\u042f]"
    r"|[\u00c0-\u024f](?=[\u00c0-\u024f]{3})|(?<=[\u00c0-\u024f]{3})[\u00c0-\u024f]"
    r"|(?<=[^\W\d_])[\u00a1-\u00a9\u00ac-\u00b3\u00b6\u00b8\u00b9\u00bc-\u00bf\u00d7\u00f7\u2500-\u25ff]"
    r"(?=[^\W\d_])|\u00b6(?=\w)|[\x80-\x9f]"
)
_MOST_ODD = 0.2
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """A document's text and how it was read.

    Attributes:
        text: without byte order mark.
        used: name of the encoding used.
        complaint: what was false about the declaration, None if nothing was.
    """

    text: str
    used: str
    complaint: str | None = None


@dataclass(frozen=True, slots=True)
class _Judgement:
    """How well the sample reads in one encoding: `score` is log frequency, `odd` a share."""

    codec: str
    score: float
    odd: float


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The bytes read in one encoding; `broken` counts what could not be decoded."""

    codec: str
    text: str
    broken: int

    @property
    def tolerable(self) -> bool:
        return self.broken * _TOLERATED <= sum(1 for each in self.text if not each.isascii())


def declared_in_prolog(data: bytes) -> str | None:
    """Return the encoding that an XML declaration names, as it is written there."""
    for mark, _ in _BOMS:
        data = data.removeprefix(mark)
    head = data[:512].replace(b"\x00", b"")
    found = _PROLOG.match(head)
    return found[1].decode("ascii", "replace") if found else None


def settle_encoding(data: bytes, charset: str | None = None) -> Reading:
    """Decode a document.

    Args:
        data: the document, as it was served or stored.
        charset: parameter of the HTTP content type, if there was one.

    Raises:
        Refused: if the bytes are not in the declared encoding and no other can be told.
    """
    claims = [each for each in (charset, declared_in_prolog(data)) if each]
    declared = [codec for codec in map(canonical, claims) if codec]
    attempt = _by_signature(data) or _by_escapes(data) or _by_utf8(data, declared)
    if attempt is None:
        attempt = _by_fluency(data, declared)
    if attempt is None:
        raise _unknown(claims)
    used = shown(attempt.codec)
    return Reading(attempt.text.removeprefix("\ufeff"), used, _complaint(attempt, claims, declared))


def canonical(name: str) -> str | None:
    """Return Python's name for an encoding's label, its superset where browsers read that."""
    try:
        codec = codecs.lookup(name.strip().strip("\"'")).name.replace("-", "_")
    except (LookupError, ValueError):
        return None
    if not re.match(
        r"utf_(8|16|32)|iso|cp\d|koi8|big5|gb|hz|shift|euc|mac|tis|johab|asc|kz|pt", codec
    ):
        return None
    return _SUPERSETS.get(codec, codec)


def shown(codec: str) -> str:
    """Return the usual name of one of Python's encodings."""
    plain = codec.removesuffix("_sig")
    return _SHOWN.get(plain, re.sub(r"^cp125", "windows-125", plain).replace("_", "-"))


def _complaint(attempt: _Attempt, claims: list[str], declared: list[str]) -> str | None:
    """Say what was false about the claims; what was guessed from ASCII alone is no complaint."""
    used = shown(attempt.codec)
    if attempt.broken:
        return f"{attempt.broken} characters are no {used} and were replaced by U+FFFD"
    believed = {_family(codec) for codec in declared} or (set() if claims else _SELF_EVIDENT)
    if attempt.text.isascii() or _family(attempt.codec) in believed:
        return None
    claim = f"declared {' and '.join(claims)}" if claims else "no encoding declared, so utf-8"
    return f"{claim}, but the bytes are {used}; read as {used}"


def _family(codec: str) -> str:
    """Return the name that byte orders, byte order marks and extensions do not change."""
    return re.sub(r"^(utf_\d+|iso2022_jp).*", r"\1", codec)


def _unknown(claims: list[str]) -> Refused:
    claim = f"declared {' and '.join(claims)}" if claims else "no encoding declared, so utf-8"
    return Refused(
        f"{claim}, but the bytes are not, and no other encoding can be told",
        "ask the publisher to declare the encoding, or convert the file to utf-8",
    )


def _attempt(data: bytes, codec: str) -> _Attempt:
    """Decode with U+FFFD for what is broken; cp1252 has all 256 bytes, as in browsers."""
    if codec == "cp1252":
        text = data.decode(codec, "surrogateescape")
        return _Attempt(codec, _SURROGATE.sub("", text), 0)
    text = data.decode(codec, "replace")
    return _Attempt(codec, text, text.count("\ufffd"))


def _by_signature(data: bytes) -> _Attempt | None:
    """Read by byte order mark, or by the zero bytes of wide encodings."""
    for mark, codec in _BOMS:
        if data.startswith(mark):
            attempt = _attempt(data, codec)
            return attempt if attempt.tolerable else None
    start = data[:64].lstrip()
    for mark, codec in _WIDE:
        if start.startswith(mark):
            return _attempt(data, codec)
    return None


def _by_escapes(data: bytes) -> _Attempt | None:
    """Read Japanese in seven bits, which its escape sequences give away."""
    if not re.search(rb"\x1b\$[@B]|\x1b\([BJ]", data):
        return None
    attempt = _attempt(data, "iso2022_jp_ext")
    return None if attempt.broken else attempt


def _by_utf8(data: bytes, declared: Sequence[str]) -> _Attempt | None:
    """Read as UTF-8 if it is; two or three East Asian characters may be so by chance."""
    attempt = _attempt(data.removeprefix(codecs.BOM_UTF8), "utf_8")
    if not attempt.tolerable:
        return None
    beyond = sum(1 for each in attempt.text if not each.isascii())
    if 0 < beyond < 4:
        for codec in _COMMON.keys() & set(declared):
            other = _attempt(data, codec)
            if not other.broken:
                return other
    return attempt


def _by_fluency(data: bytes, declared: Sequence[str]) -> _Attempt | None:
    """Take the declared encoding unless another reading is clearly more fluent."""
    sample = _sample(data)
    attempts = [_attempt(data, codec) for codec in declared]
    trusted = [_judge(sample, each.codec) for each in attempts if each.tolerable]
    others = [_judge(sample, codec) for codec in _plausible(sample)]
    best = max(trusted + others, key=lambda each: each.score, default=None)
    if best is None:
        return _by_accents(data, sample)
    for each in trusted:
        if each.odd <= _MOST_ODD and (
            each.score >= best.score - _TRUST or best.score < _LEAST_FLUENCY
        ):
            return _attempt(data, each.codec)
    attempt = _attempt(data, best.codec)
    if best.score >= _LEAST_FLUENCY and attempt.tolerable:
        return attempt
    return _by_accents(data, sample)


def _sample(data: bytes) -> bytes:
    """Return the pieces of text, markup left out, that have bytes beyond ASCII."""
    pieces: list[bytes] = []
    size = 0
    for piece in re.split(rb"<[^>]*>|[\r\n]", data):
        if not piece.isascii():
            pieces.append(piece)
            size += len(piece)
        if size > _SAMPLE_BYTES:
            break
    return b"\n".join(pieces)[: 2 * _SAMPLE_BYTES]


def _plausible(sample: bytes) -> list[str]:
    """Return the encodings that charset-normalizer holds possible, usual ones first."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - loaded when first needed

    found = from_bytes(sample, cp_isolation=list(_SOUGHT), enable_fallback=False)
    names = {name for match in found for name in (match.encoding, *match.could_be_from_charset)}
    return [codec for codec in _SOUGHT if codec in names]


def _judge(sample: bytes, codec: str) -> _Judgement:
    """Judge how the sample reads in `codec`."""
    text = _attempt(sample, codec).text
    beyond = sum(1 for each in text if not each.isascii())
    odd = len(_ODD.findall(text)) / max(1, beyond)
    if codec in _COMMON:
        fluency = _RARE + (_FLUENT - _RARE) * _common_share(text, codec)
    else:
        fluency, sequences = ngrams.fluency(text[:_FLUENCY_CHARS])
        fluency = fluency if sequences >= _FEWEST_SEQUENCES else _RARE
    return _Judgement(codec, round(fluency - 5.0 * odd, 2), odd)


def _common_share(text: str, codec: str) -> float:
    """Return the share of characters that are in the frequent part of an East Asian set."""
    leads = [each.encode(codec, "replace")[0] for each in text if not each.isascii()]
    kana = sum(lead in _KANA.get(codec, ()) for lead in leads)
    if not leads or (codec in _KANA and kana < _LEAST_KANA * len(leads)):
        return 0.0
    return sum(any(low <= lead <= high for low, high in _COMMON[codec]) for lead in leads) / len(
        leads
    )


def _by_accents(data: bytes, sample: bytes) -> _Attempt | None:
    """Read as windows-1252 if that gives Latin words with single accents, and usual signs.

    Before that, as UTF-8 with something broken in it: no accent makes a sequence of UTF-8.
    """
    utf8 = _attempt(data.removeprefix(codecs.BOM_UTF8), "utf_8")
    if 0 < utf8.broken <= sum(1 for each in utf8.text if not each.isascii()) - utf8.broken:
        return utf8
    text = _attempt(sample, "cp1252").text
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    signs = [each for each in text if not each.isascii() and not each.isalpha()]
    accented = sum(1 for word in words if _ACCENTED.fullmatch(word))
    usual = sum(1 for each in signs if each in _USUAL_SIGNS)
    if accented + usual < 0.9 * (len(words) + len(signs)):
        return None
    return _attempt(data, "cp1252")
