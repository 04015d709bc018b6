"""One form for all addresses of the same article.

Parsing, percent-encoding, default ports, dot segments and IDN are settled by ada, an
implementation of the WHATWG URL standard; what identifies an article is settled here.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import ada_url

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class TrackingList(NamedTuple):
    """Parameters that tracking.txt names: whole names, and beginnings of names; lower case."""

    names: frozenset[str]
    prefixes: tuple[str, ...]


@cache
def tracking_list() -> TrackingList:
    """Return the parameters that never say what is read, from the package data."""
    text = files("clustering.dedup").joinpath("tracking.txt").read_text("utf-8")
    lines = [line.strip() for line in text.splitlines()]
    named = [line for line in lines if line and not line.startswith("#")]
    return TrackingList(
        frozenset(name for name in named if not name.endswith("*")),
        tuple(name.removesuffix("*") for name in named if name.endswith("*")),
    )


def normalise_url(url: str, identity_params: frozenset[str] = frozenset()) -> str | None:
    """Return the form that two addresses of one article share, or None where it is no web address.

    Scheme and host are lowercased, http counts as https, a leading `www.`, the default port, user
    information, the fragment and tracking parameters are dropped, parameters are sorted, a trailing
    slash is dropped, percent-escapes have one spelling. Every other parameter stays: on a site that
    nobody described, each might be the one that names the article.

    Args:
        url: address as a feed gives it.
        identity_params: parameters that name an article on this site, kept even if the list of
            tracking parameters has them.
    """
    try:
        parsed = ada_url.URL(url.strip())
    except ValueError:
        return None
    if parsed.protocol not in {"http:", "https:"} or not parsed.hostname:
        return None
    host = _host(parsed)
    if host is None:
        return None
    path = _escapes(parsed.pathname).rstrip("/")
    query = _query(parsed.search[1:], identity_params)
    return f"https://{host}{path}" + (f"?{query}" if query else "")


def names_an_article(normalised: str) -> bool:
    """Tell whether a normalised address is more than a site's front page, which feeds give for want of better."""
    return normalised.count("/") > 2 or "?" in normalised


def _host(parsed: ada_url.URL) -> str | None:
    default = parsed.port in {"", "80", "443"}
    host = str(parsed.hostname).removesuffix(".")
    if not host or host.endswith("."):
        return None  # ada takes empty labels, no name server does
    # Only one www: "www.www.example" is another host, and normalising twice must change nothing.
    bare = host.removeprefix("www.")
    host = bare if "." in bare and not bare.startswith("www.") else host
    return host if default else f"{host}:{parsed.port}"


def _query(query: str, identity_params: frozenset[str]) -> str:
    parts = [_escapes(part.replace("+", "%20")) for part in query.split("&") if part]
    return "&".join(sorted(part for part in parts if not _is_tracking(part, identity_params)))


def _is_tracking(part: str, identity_params: frozenset[str]) -> bool:
    name = part.split("=", 1)[0]
    if name in identity_params:
        return False
    lowered = name.lower()
    tracking = tracking_list()
    return lowered in tracking.names or lowered.startswith(tracking.prefixes)


def _escapes(text: str) -> str:
    """Spell percent-escapes one way: unreserved characters bare, hex digits in capitals (RFC 3986, 6.2.2).

    A percent sign that begins no escape becomes `%25`: bare, it might begin one after decoding.
    """
    return _ESCAPE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    if match[1] is None:
        return "%25"
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()
