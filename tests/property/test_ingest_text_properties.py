"""Whatever the input, the small parts of ingest keep their promises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.ingest.cleaning import clean_line, clean_text, unstorable
from clustering.ingest.dates import DateBounds, parse_loosely
from clustering.ingest.language import settle_language
from clustering.ingest.markup import text_of
from clustering.ingest.scripts import count_letters
from clustering.ingest.tags import normalise_tag, primary

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=200)
MARKUP = st.lists(
    st.sampled_from(
        ["<p>", "</p>", "<b>", "<br>", "&amp;", "&lt;", "<", ">", "&", "a", " ", "<!--"]
    )
    | st.text(max_size=3)
).map("".join)


@given(ANYTHING)
def test_clean_text_can_be_stored_and_is_clean(text):
    for cleaned in (clean_text(text), clean_line(text)):
        assert unstorable(cleaned) is None
        assert cleaned == cleaned.strip()
    assert clean_text(clean_text(text)) == clean_text(text)
    assert clean_line(clean_text(text)) == clean_line(text)
    assert "\n" not in clean_line(text)


@given(ANYTHING | MARKUP, st.booleans())
def test_text_of_never_fails_and_is_clean(markup, html):
    plain = text_of(markup, html=html)
    assert unstorable(plain) is None
    assert clean_text(plain) == plain


@given(st.text(st.characters(categories=["L", "N", "Zs"]), max_size=100))
def test_words_pass_text_of_unharmed(text):
    assert text_of(text) == clean_text(text)


@given(st.datetimes(timezones=st.timezones()))
def test_iso_dates_come_back_as_written(moment):
    parsed = parse_loosely(moment.isoformat())
    assert parsed is None or (parsed == moment.astimezone(UTC) and parsed.tzinfo is UTC)


@given(ANYTHING)
def test_parse_loosely_never_fails(text):
    parsed = parse_loosely(text)
    assert parsed is None or parsed.tzinfo is UTC


@given(st.datetimes(timezones=st.just(UTC)), st.integers(0, 36_500))
def test_bounds_hold_both_ends(moment, day):
    bounds = DateBounds.around(datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=day))
    assert (moment in bounds) == (bounds.earliest <= moment <= bounds.latest)


@given(st.text("abcdefghijklmnopqrstuvwxyzABC0123456789-_ ", max_size=20) | ANYTHING)
def test_normalised_tags_are_stable(tag):
    canonical = normalise_tag(tag)
    if canonical is not None:
        assert normalise_tag(canonical) == canonical
        assert 2 <= len(primary(canonical)) <= 3
        assert primary(canonical).islower()


@given(ANYTHING)
def test_letters_add_up(text):
    letters = count_letters(text)
    assert letters.total == sum(letters.counts.values()) <= len(text)
    assert letters.dominant() is None or letters.total > 0


@settings(deadline=None)  # langdetect's tables are loaded once
@given(st.none() | st.sampled_from(["en", "zh", "ru-RU", "xx", "not a tag"]), ANYTHING, ANYTHING)
def test_languages_are_tags_with_a_confidence_and_never_random(declared, title, body):
    language, confidence = settle_language(declared, title, body)
    assert normalise_tag(language) == language or (language, confidence) == ("und", 0.0)
    assert 0.0 <= confidence <= 1.0
    assert settle_language(declared, title, body) == (language, confidence)
