"""Hashes under which copies of an article meet. Each is 128 bits of BLAKE2b, stored as a uuid."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from clustering.dedup.canonical import canonical_text
from clustering.dedup.sketches import NO_NEAR_KEYS, near_keys, title_sketch
from clustering.dedup.urls import names_an_article, normalise_url
from clustering.records import Keys

if TYPE_CHECKING:
    from clustering.records import Article

# Shorter bodies are stubs ("Subscribe to read on") that many articles share: a published
# aggregator hashes nothing below this.
MIN_BODY_CHARS = 400
# Han, kana and Hangul say in one character what takes two or three in other scripts: the English body
# of one document over its version, median over ntrex.jsonl, is 2.9 (zh-Hans), 2.2 (ja), 1.9 (ko); every
# other script is below 1.5, Thai at 1.0.
DENSE_SCRIPT_MIN_BODY_CHARS = 160

_DENSE = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")


def keys_of(article: Article, identity_params: frozenset[str] = frozenset()) -> Keys:
    """Return the keys of an article; `identity_params` as in `normalise_url`."""
    canonical = _telling_text(article.body)
    near = NO_NEAR_KEYS if canonical is None else near_keys(canonical)
    return Keys(
        entry_hash=_digest(
            article.title.strip(), article.body.strip(), (article.url or "").strip()
        ),
        url_hash=url_hash(article.url, identity_params),
        content_hash=None if canonical is None else _digest(canonical),
        simhash=near.simhash,
        bands=near.bands,
        title_sketch=title_sketch(article.title),
    )


def address_keys(keys: Keys) -> Keys:
    """Return the keys of an article whose text changes all the time: only its address tells what it is."""
    near = NO_NEAR_KEYS
    return replace(keys, content_hash=None, simhash=near.simhash, bands=near.bands, title_sketch=())


def url_hash(url: str | None, identity_params: frozenset[str] = frozenset()) -> UUID | None:
    """Return the hash of a normalised address, or None where it is none or a front page."""
    normalised = normalise_url(url, identity_params) if url else None
    return _digest(normalised) if normalised and names_an_article(normalised) else None


def content_hash(body: str) -> UUID | None:
    """Return the hash of what a body says, or None where it is too short to say anything of its own.

    The headline is left out: an outlet that runs a wire text writes its own. With it in the hash, none
    of the twins with another headline meet here (docs/duplicates.md).
    """
    canonical = _telling_text(body)
    return None if canonical is None else _digest(canonical)


def min_body_chars(text: str) -> int:
    """Return how many characters a body must have to be hashed: fewer where half of them are of a dense script."""
    dense = 0 if text.isascii() else len(_DENSE.findall(text))
    return DENSE_SCRIPT_MIN_BODY_CHARS if 2 * dense >= len(text) else MIN_BODY_CHARS


def _telling_text(body: str) -> str | None:
    """Return the canonical text of a body that is long enough to be told from a stub."""
    canonical = canonical_text(body)
    return canonical if len(canonical) >= min_body_chars(canonical) else None


def _digest(*parts: str) -> UUID:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        # The length keeps ("ab", "c") apart from ("a", "bc").
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return UUID(bytes=digest.digest())
