"""The small parts of ingest: cleaning, dates, tags and scripts."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from clustering.errors import SourceError
from clustering.ingest.cleaning import clean_line, clean_text, cut, unstorable
from clustering.ingest.dates import DateBounds, from_struct, parse_iso, parse_loosely
from clustering.ingest.scripts import count_letters, script_of, scripts_for
from clustering.ingest.tags import normalise_tag, primary
from clustering.ingest.trouble import Refused
from clustering.records import Refusal

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def test_clean_line_is_one_line_without_controls():
    assert clean_line("  a\x00b\x07\t c\r\n\u2028d\x85e\ufeff ") == "ab c d e"
    assert clean_line("\ud800x\uffff") == "x"


def test_clean_text_keeps_single_line_breaks():
    assert (
        clean_text(" one\x00 \n\n\n  two\u2029three\r\nfour  five ") == "one\ntwo\nthree\nfour five"
    )


def test_joiners_that_spelling_needs_stay():
    persian, khmer = "می\u200cرود", "ភាសា\u200bខ្មែរ"
    assert clean_line(persian) == persian
    assert clean_text(khmer) == khmer


def test_cut_leaves_no_space_at_the_end():
    assert cut("abc def", 4) == "abc"
    assert cut("abc", 3) == "abc"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("fine 😀 \x07", None),
        ("a\0", "a NUL character"),
        ("\udfff", "a lone surrogate (half a character)"),
    ],
)
def test_unstorable_names_what_postgres_refuses(text, named):
    assert unstorable(text) == named


def test_dates_are_bounded_from_1990_to_a_day_ahead():
    bounds = DateBounds.around(NOW)
    assert datetime(1990, 1, 1, tzinfo=UTC) in bounds
    assert datetime(1989, 12, 31, 23, 59, 59, tzinfo=UTC) not in bounds
    assert NOW + timedelta(days=1) in bounds
    assert NOW + timedelta(days=1, seconds=1) not in bounds


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-09T03:41:54z", datetime(2026, 3, 9, 3, 41, 54, tzinfo=UTC)),
        (" 2026-03-09 ", datetime(2026, 3, 9, tzinfo=UTC)),
        ("2026-03-09T23:30-02:00", datetime(2026, 3, 10, 1, 30, tzinfo=UTC)),
    ],
)
def test_iso_dates_become_utc(text, moment):
    assert parse_iso(text) == parse_loosely(text) == moment
    assert parse_iso(text).tzinfo is UTC


@pytest.mark.parametrize("text", ["", "soon", "2026-02-30", "9999-12-31T23:59:59-01:00"])
def test_what_is_no_date_is_none_or_an_error(text):
    assert parse_loosely(text) is None
    with pytest.raises(ValueError, match=r"\w"):
        parse_iso(text)


def test_struct_times_are_utc():
    moment = datetime(2026, 3, 9, 3, 41, 54, tzinfo=timezone(timedelta(hours=2)))
    assert from_struct(moment.utctimetuple()) == moment
    assert from_struct(None) is None
    assert from_struct(time.struct_time((99999, 1, 1, 0, 0, 0, 0, 1, 0))) is None


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("en", "en"),
        ("EN_us", "en-US"),
        ("pt-br", "pt-BR"),
        (" de-DE ", "de-DE"),
        ("eng", "en"),
        ("zh-cn", "zh-Hans"),
        ("zh-TW", "zh-Hant"),
        ("zh-Hant-HK", "zh-Hant"),
        ("zh", "zh"),
        ("zh-yue", "yue"),
        ("cmn", "zh"),
        ("sr-latn-rs", "sr-Latn-RS"),
        ("es-419", "es-419"),
        ("iw", "he"),
        ("in", "id"),
        ("tl", "fil"),
        ("en-US-x-private", "en-US"),
        ("de-1996", "de"),
        ("und", None),
        ("mul", None),
        ("", None),
        (None, None),
        ("english", None),
        ("en us", None),
        ("*", None),
        ("e", None),
    ],
)
def test_tags_have_one_spelling(written, canonical):
    assert normalise_tag(written) == canonical
    if canonical:
        assert normalise_tag(canonical) == canonical


def test_primary_is_the_language_of_a_tag():
    assert (primary("pt-BR"), primary("yue")) == ("pt", "yue")


@pytest.mark.parametrize(
    ("letter", "script"),
    [
        ("a", "LATIN"),
        ("ß", "LATIN"),
        ("ж", "CYRILLIC"),
        ("ক", "BENGALI"),
        ("日", "HAN"),
        ("の", "KANA"),
        ("カ", "KANA"),
        ("한", "HANGUL"),
        ("1", None),
        ("!", None),
        ("ª", None),
    ],
)
def test_script_of_a_letter(letter, script):
    assert script_of(letter) == script


def test_letters_are_counted_by_script():
    letters = count_letters("Путин met Xi 2026!")
    assert letters.total == 10
    assert letters.share("CYRILLIC") == 0.5
    assert letters.share("LATIN", "CYRILLIC") == 1.0
    assert count_letters("12 %").share("LATIN") == 0.0


@pytest.mark.parametrize(
    ("text", "dominant", "leading"),
    [
        ("Storm nears", "LATIN", "LATIN"),
        ("東京でイベント開催", "KANA", "KANA"),
        ("中国经济增长", "HAN", "HAN"),
        ("ab вг", None, "CYRILLIC"),
        ("123", None, None),
    ],
)
def test_dominant_and_leading_script(text, dominant, leading):
    letters = count_letters(text)
    assert letters.dominant() == dominant
    assert letters.leading() == leading


def test_names_in_latin_letters_do_not_lead():
    lao = "Manchester United ຊະນະ Liverpool ໃນການແຂ່ງຂັນ"
    assert count_letters(lao).dominant() == "LATIN"
    assert count_letters(lao).leading() == "LAO"


@pytest.mark.parametrize(
    ("language", "scripts"),
    [
        ("ru", {"CYRILLIC"}),
        ("en", {"LATIN"}),
        ("sr", {"LATIN", "CYRILLIC"}),
        ("ja", {"KANA", "HAN"}),
        ("xx", {"LATIN"}),
    ],
)
def test_scripts_of_a_language(language, scripts):
    assert scripts_for(language) == scripts


def test_a_refusal_names_source_and_line():
    refused = Refused("it is empty", "check it")
    assert isinstance(refused, SourceError)
    assert refused.at("a.jsonl") == Refusal("a.jsonl", None, "it is empty", "check it")
    assert str(refused.at("a.jsonl", 3)) == "a.jsonl:3: it is empty; check it"
