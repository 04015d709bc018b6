"""Whatever bytes a source holds, reading gives records and never an exception."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.ingest import DateBounds, FetchLimits, article_from_row, read_sources
from clustering.ingest.charset import settle_encoding
from clustering.ingest.cleaning import clean_line, unstorable
from clustering.ingest.markup import text_of
from clustering.ingest.trouble import Refused
from clustering.records import Article, Feed, Refusal

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
BOUNDS = DateBounds.around(NOW)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=6,
)
ROW_KEYS = ["id", "source", "url", "title", "body", "summary", "author", "published_at", "language"]
ROWS = st.dictionaries(st.sampled_from(ROW_KEYS), ANY_TEXT | JSON_VALUES)
PIECES = st.sampled_from(
    [
        *("<rss>", "</rss>", "<channel>", "<item>", "</item>", "<title>", "</title>", "<link>"),
        *("<description>", "<guid>", "<pubDate>", "<author>", "<entry>", "</entry>", "<rdf:RDF"),
        *(
            "<feed xmlns='http://www.w3.org/2005/Atom'>",
            "<content type='html'>",
            "<![CDATA[",
            "]]>",
        ),
        *(
            "&amp;",
            "&lt;p&gt;",
            "&#0;",
            "&eacute;",
            "<!--",
            "-->",
            "<?xml?>",
            "<!DOCTYPE",
            "<opml>",
        ),
        *(
            "<outline xmlUrl='a.xml'/>",
            '{"version": "https://jsonfeed.org/version/1",',
            '"items": [',
        ),
        *("{}", "]", "}", "Mon, 99 Xyz"),
    ]
)
SOUP = st.lists(PIECES | ANY_TEXT, max_size=30).map(
    lambda pieces: " ".join(pieces).encode("utf-8", "surrogatepass")
)


def read_file(data, name="source"):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return list(
            read_sources(
                [str(path)], stdin=io.BytesIO(), validators={}, limits=FetchLimits(), now=NOW
            )
        )


def check(records):
    assert records
    for record in records:
        assert isinstance(record, Article | Feed | Refusal)
        if isinstance(record, Article):
            assert record.title
            assert record.id or record.url
            assert unstorable(f"{record.title}{record.body}{record.id}{record.url}") is None
            assert record.published_at is None or record.published_at in BOUNDS


@settings(deadline=None, max_examples=150)
@given(SOUP, st.sampled_from(["a.xml", "a.jsonl", "a"]))
def test_soup_of_markup_gives_records(data, name):
    check(read_file(data, name))


@settings(deadline=None, max_examples=100)
@given(
    st.binary(max_size=300), st.sampled_from([b"", b"<rss>", b"{", b"\x1f\x8b\x08", b"\xff\xfe<"])
)
def test_any_bytes_give_records(data, start):
    check(read_file(start + data))


@settings(deadline=None, max_examples=50)
@given(SOUP, st.integers(0, 60))
def test_gzip_cut_anywhere_gives_records(data, cut):
    check(read_file(gzip.compress(data)[:cut]))


@given(ROWS)
def test_rows_are_articles_or_refused(row):
    result = article_from_row(row, BOUNDS, source="rows.jsonl", line=3)
    if isinstance(result, Refusal):
        assert (result.source, result.line) == ("rows.jsonl", 3)
        assert result.reason
        assert result.remedy
    else:
        check([result])


@settings(deadline=None)
@given(st.lists(ROWS | JSON_VALUES, min_size=1, max_size=8))
def test_each_line_gives_one_record_in_order(rows):
    data = "\n".join(json.dumps(row) for row in rows).encode()
    records = read_file(data, "rows.jsonl")
    assert len(records) == len(rows)
    refused = [record.line for record in records if isinstance(record, Refusal)]
    assert refused == sorted(refused)
    assert all(isinstance(records[line - 1], Refusal) for line in refused)


# Without U+0080 to U+00FF: feedparser takes some pairs of them for UTF-8 read as Latin-1.
WORDS = st.text(
    st.characters(
        categories=["Lu", "Ll", "Lo", "Nd", "Zs", "Po"],
        exclude_characters=[chr(code) for code in range(0x80, 0x100)],
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_a_well_formed_feed_comes_back_as_written(entries):
    items = "".join(
        f"<item><guid>g{number}</guid><title>{escape(title)}</title>"
        f"<description>{escape(body)}</description></item>"
        for number, (title, body) in enumerate(entries)
    )
    data = f"<?xml version='1.0'?><rss version='2.0'><channel>{items}</channel></rss>".encode()
    articles = {record.id: record for record in read_file(data) if isinstance(record, Article)}
    for number, (title, body) in enumerate(entries):
        if clean_line(title):
            article = articles[f"g{number}"]
            assert article.title == clean_line(text_of(title.strip()))
            assert article.body == text_of(body.strip())


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200), st.none() | st.sampled_from(["utf-8", "koi8-r", "big5", "x"]))
def test_any_bytes_are_read_in_some_encoding_or_refused(data, charset):
    try:
        text = settle_encoding(data, charset).text
    except Refused as refused:
        text = refused.remedy
    assert not text.startswith("\ufeff")


@given(st.text(min_size=1, max_size=200))
def test_utf_8_is_always_read_as_utf_8(text):
    reading = settle_encoding(b"<rss>" + text.encode() + b"</rss>")
    assert (reading.text, reading.used) == (f"<rss>{text}</rss>", "utf-8")
    assert reading.complaint is None
