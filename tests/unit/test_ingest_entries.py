"""Entries to articles: what is made up for, what is dropped, what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clustering.ingest import DateBounds
from clustering.ingest.entries import Entry, Markup, Setting, to_article, web_address

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
SETTING = Setting(
    "https://north.example/feed", "https://north.example/", "de", DateBounds.around(NOW)
)
ENTRY = Entry(
    title=Markup("Storm &amp; flood"),
    bodies=[Markup("Short."), Markup("<p>The longer text.</p>", html=True)],
    id="tag:north,1",
    link="/world/1",
    dates=[NOW - timedelta(hours=3)],
    author="E. Drayford",
    language="en_us",
)


def made(**changes):
    return to_article(replace(ENTRY, **changes), SETTING)


def test_an_entry_becomes_an_article():
    article = to_article(ENTRY, SETTING)
    assert article.title == "Storm & flood"
    assert article.body == "The longer text."
    assert article.id == "tag:north,1"
    assert article.url == "https://north.example/world/1"
    assert article.source == "https://north.example/feed"
    assert article.author == "E. Drayford"
    assert article.published_at == NOW - timedelta(hours=3)
    assert article.language == "en-US"


def test_the_longest_body_is_taken_by_its_text():
    """Not by its markup."""
    long_markup = Markup("<div class='a very long class name indeed'>x</div>", html=True)
    assert made(bodies=[long_markup, Markup("some words")]).body == "some words"
    assert made(bodies=[]).body == ""


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<p>First sentence. Second one.</p>", "First sentence."),
        ("Is it 3.5 per cent? Yes.", "Is it 3.5 per cent?"),
        ("第一句话。第二句话。", "第一句话。"),
        ("پہلا جملہ۔ دوسرا", "پہلا جملہ۔"),
        ("first line\nsecond line", "first line"),
        ("no end of sentence", "no end of sentence"),
        ("word " * 50, ("word " * 50)[:100].rstrip()),
    ],
)
@pytest.mark.parametrize("blank", [None, Markup(""), Markup("<br/>"), Markup("\x00 \n")])
def test_a_title_is_made_of_the_first_sentence(body, title, blank):
    assert made(title=blank, bodies=[Markup(body)]).title == title


def test_neither_title_nor_body_is_no_article():
    assert made(title=None, bodies=[]) is None
    assert made(title=Markup("<p></p>"), bodies=[Markup("<img src='x'>")]) is None


def test_titles_and_bodies_are_cut_to_what_is_kept():
    article = made(title=Markup("T" * 20_000), bodies=[Markup("b" * 1_500_000)], author="a" * 900)
    assert (len(article.title), len(article.body), len(article.author)) == (10_000, 1_000_000, 500)


def test_nul_and_controls_are_dropped():
    article = made(
        title=Markup("A\x00B\x07 C\ud800"),
        bodies=[Markup("x\x00y\x1b")],
        author="E\x00 D",
        id="i\x00d",
    )
    assert (article.title, article.body, article.author, article.id) == ("AB C", "xy", "E D", "id")


@pytest.mark.parametrize(
    ("identifier", "link", "expected", "url"),
    [
        ("guid", "/1", "guid", "https://north.example/1"),
        (None, "/1", "/1", "https://north.example/1"),
        ("  ", "https://o.example/a?b=1", "https://o.example/a?b=1", "https://o.example/a?b=1"),
        ("guid", None, "guid", None),
        ("guid", "javascript:alert(1)", "guid", None),
        ("guid", "http://[half", "guid", None),
    ],
)
def test_the_id_is_the_guid_or_else_the_link(identifier, link, expected, url):
    article = made(id=identifier, link=link)
    assert (article.id, article.url) == (expected, url)


def test_without_guid_and_link_an_id_is_made_of_title_and_date():
    one, again = made(id=None, link=None), made(id=None, link=None)
    assert one.id == again.id
    assert len(one.id) == 64
    assert one.url is None
    other_title = made(id=None, link=None, title=Markup("Other"))
    other_date = made(id=None, link=None, dates=[NOW])
    no_date = made(id=None, link=None, dates=[])
    assert len({one.id, other_title.id, other_date.id, no_date.id}) == 4


def test_an_id_too_long_for_an_index_is_hashed():
    long_one, long_other = made(id="x" * 3_000), made(id="x" * 3_001)
    assert len(long_one.id) == len(long_other.id) == 64
    assert long_one.id != long_other.id
    assert made(id="x" * 2_000).id == "x" * 2_000


def test_the_first_date_within_bounds_is_taken():
    epoch, future = datetime(1970, 1, 1, tzinfo=UTC), NOW + timedelta(days=40)
    assert made(dates=[epoch, future]).published_at is None
    assert made(dates=[epoch, NOW, future]).published_at == NOW
    assert made(dates=[]).published_at is None


@pytest.mark.parametrize(
    ("own", "language"),
    [("en", "en"), (None, "de"), ("", "de"), ("nonsense tag", "de"), ("und", "de")],
)
def test_the_feeds_language_stands_in(own, language):
    assert made(language=own).language == language


def test_no_language_at_all_is_none():
    setting = replace(SETTING, language=None)
    assert to_article(replace(ENTRY, language=None), setting).language is None


@pytest.mark.parametrize(
    ("link", "base", "address"),
    [
        ("https://a.example/x", None, "https://a.example/x"),
        ("../y", "https://a.example/b/c/", "https://a.example/b/y"),
        ("//cdn.example/y", "https://a.example/", "https://cdn.example/y"),
        (" https://a.example/\n x ", None, "https://a.example/ x"),
        ("/y", None, None),
        ("mailto:a@b.example", "https://a.example/", None),
        ("https://", None, None),
        (None, "https://a.example/", None),
    ],
)
def test_web_addresses_are_absolute_http(link, base, address):
    assert web_address(link, base) == address
