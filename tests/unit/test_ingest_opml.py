"""OPML lists: nested, relative, from disk and from the net, well-formed or nearly."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from ingest_server import body, serving

from clustering.ingest import FetchLimits, read_sources
from clustering.ingest.opml import Outline, read_opml
from clustering.ingest.safexml import document_of
from clustering.ingest.trouble import Refused
from clustering.records import Article, Feed, Refusal

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
LIMITS = FetchLimits(total_seconds=10)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def opml(*outlines: str) -> str:
    return f"<?xml version='1.0'?><opml version='2.0'><body>{''.join(outlines)}</body></opml>"


def rss(title: str, language: str = "") -> bytes:
    told = f"<language>{language}</language>" if language else ""
    item = f"<item><title>{title}!</title><guid isPermaLink='false'>{title}</guid></item>"
    return (
        f"<rss version='2.0'><channel><title>{title}</title>{told}{item}</channel></rss>".encode()
    )


def outlines_of(text: str) -> list[Outline]:
    return read_opml(document_of(text))


def read(*sources):
    return list(
        read_sources(
            [str(source) for source in sources],
            stdin=io.BytesIO(),
            validators={},
            limits=LIMITS,
            now=NOW,
        )
    )


def test_nested_outlines_are_found_in_their_order():
    text = opml(
        "<outline text='News'><outline text='Deep'><outline text='A' xmlUrl='http://a/'/></outline>"
        "</outline>",
        "<outline title='B' text='b' xmlUrl=' http://b/ ' language='pt_br'/>",
        "<outline text='a folder with no feed'/>",
    )
    assert outlines_of(text) == [
        Outline("http://a/", "A", None),
        Outline("http://b/", "B", "pt-BR"),
    ]


def test_attribute_names_in_any_case_and_the_old_url():
    text = opml(
        "<outline XMLURL='http://a/'/><outline type='rss' url='http://b/'/>",
        "<outline type='link' url='http://c/'/>",
    )
    assert [each.address for each in outlines_of(text)] == ["http://a/", "http://b/"]


def test_each_address_once():
    text = opml("<outline text='1' xmlUrl='http://a/'/>" * 3)
    assert outlines_of(text) == [Outline("http://a/", "1", None)]


def test_stray_ampersands_are_mended():
    text = opml("<outline text='Q &amp; A & more' xmlUrl='http://a/?x=1&y=2&amp;z=3'/>")
    assert outlines_of(text) == [Outline("http://a/?x=1&y=2&z=3", "Q & A & more", None)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (opml(), "names no feed"),
        (opml("<outline text='x'/>"), "names no feed"),
        ("<opml><body><outline xmlUrl='http://a/'></body></opml>", "ill-formed"),
        ("<opml><body><outline", "ill-formed"),
    ],
)
def test_lists_that_are_refused(text, said):
    with pytest.raises(Refused, match=said):
        outlines_of(text)


BOMB = (
    "<!DOCTYPE opml [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
    "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'>]>"
)


@pytest.mark.parametrize(
    "doctype",
    [
        BOMB,
        "<!DOCTYPE opml [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
        "<!DOCTYPE opml [<!ENTITY % x SYSTEM 'http://127.0.0.1/x.dtd'> %x;]>",
        f"<!DOCTYPE opml [<!ENTITY x '{'x' * 100_000}'>]>",
    ],
)
def test_entities_that_expand_are_refused(doctype):
    with pytest.raises(Refused, match="it declares"):
        outlines_of(f"<?xml version='1.0'?>{doctype}<opml><outline xmlUrl='http://a/&c;'/></opml>")


def test_files_are_relative_to_the_list(tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "feeds").mkdir()
    (tmp_path / "feeds" / "a.xml").write_bytes(rss("A"))
    (tmp_path / "lists" / "rows.jsonl").write_bytes(b'{"title": "row", "id": "1"}\n')
    listed = tmp_path / "lists" / "all.opml"
    listed.write_text(
        opml(
            "<outline xmlUrl='../feeds/a.xml'/><outline xmlUrl='rows.jsonl'/>",
            "<outline xmlUrl='missing.xml'/>",
        )
    )
    article, feed, row, refused = read(listed)
    assert (article.title, feed.title, row.title) == ("A!", "A", "row")
    assert refused.source == str(tmp_path / "lists" / "missing.xml")
    assert refused.reason == "no such file"


def test_what_is_named_twice_is_read_once(tmp_path):
    (tmp_path / "a.xml").write_bytes(rss("A"))
    listed = tmp_path / "all.opml"
    listed.write_text(opml("<outline xmlUrl='a.xml'/><outline xmlUrl='./a.xml'/>"))
    found = read(listed, tmp_path / "a.xml", listed)
    assert [type(each) for each in found] == [Article, Feed]


def test_the_language_of_the_list_is_the_last_resort(tmp_path):
    (tmp_path / "told.xml").write_bytes(rss("Told", "fr"))
    (tmp_path / "silent.xml").write_bytes(rss("Silent"))
    listed = tmp_path / "all.opml"
    listed.write_text(
        opml(
            "<outline xmlUrl='told.xml' language='de'/>",
            "<outline xmlUrl='silent.xml' language='de'/>",
        )
    )
    told, told_feed, silent, silent_feed = read(listed)
    assert (told.language, told_feed.language) == ("fr", "fr")
    assert (silent.language, silent_feed.language) == ("de", "de")


def test_a_list_in_a_list_is_refused_and_no_loop(tmp_path):
    outer, inner = tmp_path / "outer.opml", tmp_path / "inner.opml"
    outer.write_text(opml("<outline xmlUrl='inner.opml'/><outline xmlUrl='outer.opml'/>"))
    inner.write_text(opml("<outline xmlUrl='outer.opml'/>"))
    (refused,) = read(outer)
    assert refused.source == str(inner)
    assert refused.reason == "an OPML list inside an OPML list"


def test_a_fetched_list_names_addresses_relative_to_its_own():
    text = opml("<outline text='Listed' xmlUrl='a.xml'/><outline xmlUrl='/b.xml'/>")
    nameless = rss("B").replace(b"<title>B</title>", b"", 1)
    pages = {"/l/all.opml": text.encode(), "/l/a.xml": rss("A"), "/b.xml": nameless}
    with serving({path: body(data) for path, data in pages.items()}) as server:
        found = read(server.url("/l/all.opml"))
        feeds = [each.address for each in found if isinstance(each, Feed)]
        assert feeds == [server.url("/l/a.xml"), server.url("/b.xml")]
    assert [each.title for each in found if isinstance(each, Article)] == ["A!", "B!"]


def test_a_fetched_list_reads_no_file(tmp_path):
    secret = tmp_path / "secret.jsonl"
    secret.write_bytes(b'{"title": "secret", "id": "1"}\n')
    text = opml(f"<outline xmlUrl='{secret}'/><outline xmlUrl='{secret.as_uri()}'/>")
    with serving({"/": body(text.encode())}) as server:
        found = read(server.url("/"))
    assert len(found) == 2
    assert all(isinstance(each, Refusal) for each in found)


def test_the_name_in_the_list_stands_in_for_a_feed_without_one(tmp_path):
    (tmp_path / "a.xml").write_bytes(rss("A").replace(b"<title>A</title>", b"", 1))
    listed = tmp_path / "all.opml"
    listed.write_text(opml("<outline text='Listed' xmlUrl='a.xml'/>"))
    assert read(listed)[-1] == Feed(str(tmp_path / "a.xml"), "Listed")


def test_a_list_in_utf16_and_one_in_gzip(tmp_path):
    import gzip

    (tmp_path / "a.xml").write_bytes(rss("A"))
    text = opml("<outline xmlUrl='a.xml'/>")
    wide, packed = tmp_path / "wide.opml", tmp_path / "packed.opml.gz"
    wide.write_bytes(text.replace("'1.0'", "'1.0' encoding='utf-16'").encode("utf-16"))
    packed.write_bytes(gzip.compress(text.encode()))
    assert [type(each) for each in read(wide)] == [Article, Feed]
    assert [type(each) for each in read(packed)] == [Article, Feed]


def test_one_dead_feed_of_a_list_stops_no_other():
    text = opml(*(f"<outline xmlUrl='{n}'/>" for n in range(5)))
    pages = {f"/{n}": body(rss(str(n))) for n in range(5) if n != 2}
    with serving(pages | {"/": body(text.encode())}) as server:
        found = read(server.url("/"))
    kinds = [type(each) for each in found if not isinstance(each, Feed)]
    assert kinds == [Article, Article, Refusal, Article, Article]


def test_size_limit_holds_for_lists(tmp_path):
    listed = tmp_path / "big.opml"
    listed.write_text(opml("<outline xmlUrl='http://a/'/>" * 1_000))
    (refused,) = read_sources(
        [str(listed)],
        stdin=io.BytesIO(),
        validators={},
        limits=replace(LIMITS, max_bytes=10_000),
        now=NOW,
    )
    assert "10,000 bytes" in refused.reason
