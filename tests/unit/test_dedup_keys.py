from __future__ import annotations

import unicodedata

import pytest

from clustering.dedup.keys import (
    DENSE_SCRIPT_MIN_BODY_CHARS,
    MIN_BODY_CHARS,
    canonical_text,
    content_hash,
    keys_of,
    min_body_chars,
)
from clustering.records import Article

ENGLISH = "The river rose two metres overnight and the lower town was cleared before dawn. " * 6
BANGLA = "রাতে নদীর পানি দুই মিটার বেড়েছে এবং নিচু এলাকা ভোরের আগেই খালি করা হয়েছে বলে জানিয়েছে। " * 6
JAPANESE = (
    "川の水位は夜のうちにニメートル上昇し、低地の町は夜明け前に避難を完了したと市が発表した。ガス供給も止まった。"
    * 4
)


def test_bangla_letters_composed_and_decomposed_are_one_text():
    decomposed = BANGLA.replace("\u09df", "\u09af\u09bc").replace("\u09dc", "\u09a1\u09bc")
    composed = BANGLA.replace("\u09af\u09bc", "\u09df").replace("\u09a1\u09bc", "\u09dc")
    assert decomposed != composed
    assert content_hash(decomposed) == content_hash(composed) is not None


def test_japanese_half_width_and_full_width_kana_are_one_text():
    half = JAPANESE.replace("ガ", "ｶﾞ").replace("メートル", "ﾒｰﾄﾙ")
    split = unicodedata.normalize("NFD", JAPANESE)
    assert half != JAPANESE != split
    assert content_hash(half) == content_hash(split) == content_hash(JAPANESE) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("“We were warned”", '"We were warned"'),
        ("«We were warned»", '"We were warned"'),
        ("it’s gone", "it's gone"),
        ("two — three", "two - three"),
        ("two – three", "two \u2212 three"),
        ("a\u00a0b\u3000c\n\td", "a b c d"),
        ("STRASSE", "straße"),
        ("ﬁnal", "final"),
        ("１２３", "123"),
    ],
)
def test_spellings_of_one_text_are_one(one, other):
    assert canonical_text(one) == canonical_text(other)
    assert content_hash(one + ENGLISH) == content_hash(other + ENGLISH) is not None


@pytest.mark.parametrize(
    "attribution", [" (Reuters)", " — North Wire", " | Coast Radio", "\nSource: AFP.", " - dpa"]
)
def test_who_sent_a_text_is_no_part_of_it(attribution):
    assert content_hash(ENGLISH + attribution) == content_hash(ENGLISH) is not None


@pytest.mark.parametrize(
    "ending",
    [
        " Nobody was hurt.",
        " The dam held - for now. Engineers stay.",
        " Trains stop (all lines). Buses run.",
    ],
)
def test_what_a_text_says_at_its_end_stays(ending):
    assert content_hash(ENGLISH + ending) != content_hash(ENGLISH)


def test_texts_that_differ_by_a_number_stay_apart():
    assert content_hash(ENGLISH) != content_hash(ENGLISH.replace("two", "2"))


def test_a_body_too_short_has_no_hash():
    assert content_hash("") is None
    assert content_hash("Subscribe to read on.") is None
    assert content_hash("a" * (MIN_BODY_CHARS - 1)) is None
    assert content_hash("a" * MIN_BODY_CHARS) is not None


def test_white_space_and_attribution_do_not_make_a_body_long_enough():
    assert content_hash("a" * 390 + " " * 50) is None
    assert content_hash("a" * 395 + " (Reuters)") is None


@pytest.mark.parametrize("character", ["漢", "あ", "ア", "한"])
def test_dense_scripts_say_as_much_in_fewer_characters(character):
    assert content_hash(character * (DENSE_SCRIPT_MIN_BODY_CHARS - 1)) is None
    assert content_hash(character * DENSE_SCRIPT_MIN_BODY_CHARS) is not None


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("ก" * 200, MIN_BODY_CHARS),
        ("漢" * 100 + "x" * 100, DENSE_SCRIPT_MIN_BODY_CHARS),
        ("漢" * 99 + "x" * 101, MIN_BODY_CHARS),
    ],
)
def test_a_body_is_dense_when_half_of_it_is(text, least):
    assert min_body_chars(text) == least


def test_the_headline_is_no_part_of_the_content():
    one = keys_of(Article("Flood", url="https://a.org/1", body=ENGLISH))
    other = keys_of(Article("Town cleared", url="https://b.org/2", body=ENGLISH))
    assert one.content_hash == other.content_hash
    assert one.entry_hash != other.entry_hash
    assert one.url_hash != other.url_hash


def test_an_entry_is_its_title_body_and_address_and_nothing_else():
    one = Article("Flood", id="1", url="https://a.org/1", source="a", body=ENGLISH)
    again = Article(" Flood ", id="2", url="https://a.org/1 ", source="b", body=f"\n{ENGLISH}")
    assert keys_of(one).entry_hash == keys_of(again).entry_hash


def test_parts_of_an_entry_do_not_run_together():
    assert (
        keys_of(Article("ab", body="c")).entry_hash != keys_of(Article("a", body="bc")).entry_hash
    )
    assert keys_of(Article("a", body="b")) != keys_of(Article("a", url="b"))


@pytest.mark.parametrize(
    "url", [None, "", "https://example.org", "https://www.example.org/", "mailto:desk@example.org"]
)
def test_an_address_that_names_no_article_has_no_hash(url):
    assert keys_of(Article("Flood", url=url)).url_hash is None


def test_identity_parameters_reach_the_address():
    one = Article("Flood", url="https://example.org/read?spm=1")
    other = Article("Flood", url="https://example.org/read?spm=2")
    assert keys_of(one).url_hash == keys_of(other).url_hash
    params = frozenset({"spm"})
    assert keys_of(one, params).url_hash != keys_of(other, params).url_hash
