from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from clustering.dedup.keys import MIN_BODY_CHARS, canonical_text, content_hash, keys_of
from clustering.records import Article

# What ingest lets through: no lone surrogates.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
LONG = "word " * 200


@given(TEXT, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_the_unicode_form_of_a_text_does_not_matter(text, form):
    assert canonical_text(unicodedata.normalize(form, text)) == canonical_text(text)


@given(TEXT, st.sampled_from([" ", "\n", "\t", "\u3000", "\u00a0", " \r\n "]))
def test_white_space_does_not_matter(text, space):
    spaced = space.join(["", *text.split(), ""])
    assert canonical_text(spaced) == canonical_text(text)


@given(TEXT)
def test_case_does_not_matter(text):
    assert canonical_text(text.casefold()) == canonical_text(text)


@given(TEXT, TEXT)
def test_bodies_have_one_hash_exactly_when_they_share_a_canonical_text(one, other):
    first, second = content_hash(LONG + one), content_hash(LONG + other)
    assert first is not None
    assert second is not None
    equal = canonical_text(LONG + one) == canonical_text(LONG + other)
    assert (first == second) == equal


@given(TEXT, TEXT, TEXT, st.text("abc.:/?", max_size=20))
def test_any_article_has_keys_and_the_same_ones_again(title, body, author, url):
    article = Article(title, body=body, author=author, url=url)
    keys = keys_of(article)
    assert keys == keys_of(article)
    assert keys.content_hash is None or len(canonical_text(body)) >= min(MIN_BODY_CHARS, 160)


PARTS = st.tuples(TEXT, TEXT, TEXT)


@given(PARTS, PARTS)
def test_entries_have_one_hash_exactly_when_their_parts_are_equal(one, other):
    equal = [part.strip() for part in one] == [part.strip() for part in other]
    hashes = {
        keys_of(Article(title, body=body, url=url)).entry_hash for title, body, url in (one, other)
    }
    assert (len(hashes) == 1) == equal
