"""Language tags (BCP 47, RFC 5646) as sources write them, to one spelling."""

from __future__ import annotations

import re

_WELL_FORMED = re.compile(
    r"(?P<language>[a-z]{2,3})"
    r"(?P<extended>(?:-[a-z]{3}){0,3})"
    r"(?:-(?P<script>[a-z]{4}))?"
    r"(?:-(?P<region>[a-z]{2}|\d{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|\d[a-z0-9]{3}))*"
    r"(?:-[a-wyz0-9](?:-[a-z0-9]{2,8})+)*"
    r"(?:-x(?:-[a-z0-9]{1,8})+)?"
)
#: Tags that say nothing of the text: unknown, several, none, not yet coded.
_SILENT = frozenset({"und", "mul", "zxx", "mis"})
# IANA registry: deprecated codes, and the two-letter code where ISO 639 has both (RFC 5646
# section 2.2.1 asks for the shortest). The three-letter codes are those met in feeds.
_SHORTER = (
    "afr:af amh:am ara:ar arb:ar aze:az bel:be ben:bn bos:bs bul:bg cat:ca ces:cs cmn:zh "
    "cym:cy cze:cs dan:da deu:de dut:nl ell:el eng:en est:et eus:eu fas:fa fin:fi fra:fr "
    "fre:fr geo:ka ger:de gle:ga glg:gl gre:el guj:gu hau:ha heb:he hin:hi hrv:hr hun:hu "
    "hye:hy ind:id isl:is ita:it jpn:ja kan:kn kat:ka kaz:kk khm:km kir:ky kor:ko kur:ku "
    "lao:lo lav:lv lit:lt mal:ml mar:mr may:ms mkd:mk mlt:mt mon:mn msa:ms mya:my nep:ne "
    "nld:nl nob:nb nor:no ori:or pan:pa per:fa pol:pl por:pt pus:ps ron:ro rum:ro rus:ru "
    "sin:si slk:sk slo:sk slv:sl som:so spa:es sqi:sq alb:sq srp:sr swa:sw swe:sv tam:ta "
    "tel:te tgl:fil tha:th tur:tr ukr:uk urd:ur uzb:uz vie:vi zho:zh chi:zh"
)
_PREFERRED = {
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "jw": "jv",
    "mo": "ro",
    "sh": "sr",
    "tl": "fil",
    **dict(pair.split(":") for pair in _SHORTER.split()),
}
_CHINESE_REGIONS = {"CN": "Hans", "SG": "Hans", "MY": "Hans"} | dict.fromkeys(
    ("TW", "HK", "MO"), "Hant"
)


def normalise_tag(tag: str | None) -> str | None:
    """Return `tag` in canonical spelling, or None where it is no tag or says nothing.

    `en_us` becomes `en-US`, `pt-br` `pt-BR`, `eng` `en`. Chinese is told by script, as the
    script and not the region decides how it is read: `zh-cn` becomes `zh-Hans`, `zh-tw`
    `zh-Hant`. Extensions and private use are dropped.
    """
    if tag is None:
        return None
    found = _WELL_FORMED.fullmatch(tag.strip().replace("_", "-").lower())
    if found is None or found["language"] in _SILENT:
        return None
    language = found["extended"][1:4] or found["language"]
    language = _PREFERRED.get(language, language)
    script = (found["script"] or "").title()
    region = (found["region"] or "").upper()
    if language == "zh":
        script, region = script or _CHINESE_REGIONS.get(region, ""), ""
    return "-".join(part for part in (language, script, region) if part)


def primary(tag: str) -> str:
    """Return the language of a tag: `pt` of `pt-BR`."""
    return tag.partition("-")[0]
