"""Feeds end to end: each format, one trait at a time, and what sloppy sites and attackers write."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clustering.ingest import FetchLimits, read_sources
from clustering.records import Article, Feed, Refusal

NOW = datetime(2026, 7, 1, tzinfo=UTC)
LIMITS = FetchLimits()


def read(path, limits=LIMITS):
    return list(
        read_sources([str(path)], stdin=io.BytesIO(), validators={}, limits=limits, now=NOW)
    )


@pytest.fixture
def feed(tmp_path):
    """Reads a document that a file holds."""

    def read_text(text: str | bytes, limits: FetchLimits = LIMITS, name: str = "feed.xml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read(path, limits)

    return read_text


def articles(found):
    return [each for each in found if isinstance(each, Article)]


def refusals(found):
    return [each for each in found if isinstance(each, Refusal)]


def item(inside: str, before: str = "", root: str = "rss version='2.0'") -> str:
    name = root.partition(" ")[0]
    return f"<{root}><channel><title>F</title>{before}<item>{inside}</item></channel></{name}>"


def one(found) -> Article:
    (article,) = articles(found)
    return article


# one thing at a time


def test_guid_then_link_then_a_made_id(feed):
    with_guid = item("<title>T</title><guid isPermaLink='false'>g 1</guid><link>http://x/1</link>")
    assert one(feed(with_guid)).id == "g 1"
    assert one(feed(item("<title>T</title><link>http://x/1</link>"))).id == "http://x/1"
    first, again = (one(feed(item("<title>T</title>"))) for _ in range(2))
    assert first.url is None
    assert len(first.id) == 64
    assert first.id == again.id
    later = item("<title>T</title><pubDate>Mon, 09 Mar 2026 03:00:00 GMT</pubDate>")
    assert one(feed(later)).id != first.id


def test_a_title_is_made_of_the_first_sentence(feed):
    assert (
        one(feed(item("<description>One is enough. Two.</description>"))).title == "One is enough."
    )
    long = one(feed(item(f"<description>{'word ' * 60}</description>"))).title
    assert long == ("word " * 20).strip()
    japanese = item("<title> </title><description>台風が来る。学校は休み。</description>")
    assert one(feed(japanese)).title == "台風が来る。"
    assert one(feed(item("<description><![CDATA[<p>Head<p>Rest.]]></description>"))).title == "Head"


def test_an_entry_without_text_is_refused_by_its_number(feed):
    found = feed(item("<title>T</title></item><item><link>http://x/2</link>"))
    assert [each.title for each in articles(found)] == ["T"]
    (refused,) = refusals(found)
    assert "entry 2" in refused.reason


def test_the_longest_of_content_and_summary_is_the_body(feed):
    entry = "<entry><title>T</title><id>1</id><summary>{}</summary><content type='html'>{}</content></entry>"
    atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title>{}</feed>"
    assert one(feed(atom.format(entry.format("short", "longer text")))).body == "longer text"
    assert one(feed(atom.format(entry.format("longer text", "short")))).body == "longer text"


@pytest.mark.parametrize(
    ("kind", "inside", "plain"),
    [
        ("html", "&lt;p&gt;One&lt;/p&gt;&lt;p&gt;R&amp;amp;D&lt;/p&gt;", "One\nR&D"),
        ("xhtml", "<div xmlns='http://www.w3.org/1999/xhtml'><p>One</p><p>a &lt; b</p></div>", "One\na < b"),
        ("text", "a &lt; b &amp; c", "a < b & c"),
        ("html", "<![CDATA[<script>x()</script><b>Bold</b> text]]>", "Bold text"),
        ("html", "&amp;lt;p&amp;gt;twice&amp;lt;/p&amp;gt;", "twice"),
    ],
)  # fmt: skip
def test_atom_content_of_each_type(feed, kind, inside, plain):
    text = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title><entry><title>T</title>"
        f"<id>1</id><content type='{kind}'>{inside}</content></entry></feed>"
    )
    assert one(feed(text)).body == plain


@pytest.mark.parametrize(
    ("title", "plain"),
    [
        ("AT&amp;T", "AT&T"),
        ("AT&amp;amp;T", "AT&T"),
        ("a &lt; b", "a < b"),
        ("&lt;b&gt;Bold&lt;/b&gt; move", "Bold move"),
        ("<![CDATA[Fish & chips]]>", "Fish & chips"),
        ("caf&eacute; &nbsp;&#233;", "café é"),
        ("don&#146;t", "don’t"),
        ("stray & ampersand", "stray & ampersand"),
        ("NUL &#0;and &#x1F;controls&#xD800;", "NUL and controls"),
        ("two\nlines", "two lines"),
    ],
)
def test_titles_as_they_are_written(feed, title, plain):
    assert one(feed(item(f"<title>{title}</title>"))).title == plain


def test_raw_controls_and_nuls_are_dropped(feed):
    found = feed(item("<title>a\0b\x08c\x1b</title>").encode())
    assert one(found).title == "abc"
    assert not refusals(found)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("Mon, 09 Mar 2026 03:41:54 GMT", datetime(2026, 3, 9, 3, 41, 54, tzinfo=UTC)),
        ("Mon, 09 Mar 2026 03:41:54 +0200", datetime(2026, 3, 9, 1, 41, 54, tzinfo=UTC)),
        ("09 Mar 2026 03:41 EST", datetime(2026, 3, 9, 8, 41, tzinfo=UTC)),
        ("2026-03-09T03:41:54Z", datetime(2026, 3, 9, 3, 41, 54, tzinfo=UTC)),
        ("2026-03-09", datetime(2026, 3, 9, tzinfo=UTC)),
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Fri, 01 Jan 2100 00:00:00 GMT", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates_and_dates_that_are_dropped(feed, written, moment):
    found = feed(item(f"<title>T</title><pubDate>{written}</pubDate>"))
    assert one(found).published_at == moment
    assert not refusals(found)


def test_the_update_stands_in_for_a_bad_publication_date(feed):
    text = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><title>F</title><entry><title>T</title><id>1</id>"
        "<published>0001-01-01T00:00:00Z</published><updated>2026-03-09T03:00:00Z</updated>"
        "</entry></feed>"
    )
    assert one(feed(text)).published_at == datetime(2026, 3, 9, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("root", "before", "inside", "language"),
    [
        ("rss version='2.0'", "<language>en_us</language>", "", "en-US"),
        ("rss version='2.0' xml:lang='de'", "", "", "de"),
        ("rss version='2.0'", "", "", None),
        ("rss version='2.0'", "<language>nonsense!</language>", "", None),
        ("rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'", "<language>en</language>",
         "<dc:language>fr</dc:language>", "fr"),
    ],
)  # fmt: skip
def test_language_of_the_entry_then_of_the_feed(feed, root, before, inside, language):
    assert one(feed(item(f"<title>T</title>{inside}", before, root))).language == language


def test_xml_lang_of_an_entry_wins(feed):
    text = (
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:lang='en'><title>F</title>"
        "<entry xml:lang='ta'><title>T</title><id>1</id></entry>"
        "<entry><title>U</title><id>2</id></entry></feed>"
    )
    assert [each.language for each in articles(feed(text))] == ["ta", "en"]


def test_the_language_of_a_content_is_that_of_an_entry_without_another(feed):
    text = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id>"
        "<content xml:lang='ta'>Text</content></entry></feed>"
    )
    assert one(feed(text)).language == "ta"


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("<author>jo@x.example (Jo Doe)</author>", "Jo Doe"),
        ("<author>Jo Doe</author>", "Jo Doe"),
        ("<author>jo@x.example</author>", None),
        ("<dc:creator>A. B. &amp; C. D.</dc:creator>", "A. B. & C. D."),
        ("<dc:creator>Jo Doe (mailto:jo@x.example)</dc:creator>", "Jo Doe"),
        ("<author/>", None),
    ],
)
def test_authors_without_their_addresses(feed, author, name):
    root = "rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/'"
    assert one(feed(item(f"<title>T</title>{author}", root=root))).author == name


def test_the_source_of_a_file_is_its_own_address_its_site_or_its_path(feed, tmp_path):
    self_link = (
        "<atom:link xmlns:atom='http://www.w3.org/2005/Atom' rel='self' href='http://x/feed'/>"
    )
    site = "<link>http://x/</link>"
    sources = [
        one(feed(item("<title>T</title>", before))).source
        for before in (site + self_link, site, "", "<link>/relative</link>")
    ]
    path = str(tmp_path / "feed.xml")
    assert sources == ["http://x/feed", "http://x/", path, path]


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "mailto:jo@x.example", "http://[half", "urn:x"]
)
def test_links_that_are_no_web_address_give_no_url(feed, link):
    article = one(feed(item(f"<title>T</title><link>{link}</link>")))
    assert article.url is None
    assert article.id


def test_relative_links_start_from_the_base_or_the_site(feed):
    text = item("<title>T</title><link>/news/1</link>", "<link>http://x/</link>")
    assert one(feed(text)).url == "http://x/news/1"
    based = item("<title>T</title><link>1</link>", root="rss version='2.0' xml:base='http://y/a/'")
    assert one(feed(based)).url == "http://y/a/1"


# documents that are no feeds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it is empty"),
        (" \n\t ", "it is empty"),
        ("<!DOCTYPE html><html><body>Hello</body></html>", "an HTML page"),
        ("<html xmlns='http://www.w3.org/1999/xhtml'/>", "an HTML page"),
        ("<?xml version='1.0'?><note><to>you</to></note>", "XML, but no feed (its root is <note>)"),
        ("<?xml version='1.0'?>", "no element"),
        ("<!-- only a comment -->", "no element"),
        ('{"hello": "world", "list": [\n1]}', "neither JSON Lines nor a JSON Feed"),
        ("[1, 2, 3]", "neither JSON Lines nor a JSON Feed"),
        ("{\n", "not JSON"),
        ("plain words", "neither a feed nor OPML nor JSON Lines"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "neither a feed nor OPML nor JSON Lines"),
        ("<rss version='2.0'><channel><title>F</title></channel></rss>", "a feed without entries"),
        ("<rss version='2.0'><channel><title>F", "ill-formed"),
    ],
)
def test_what_is_no_feed_gives_one_refusal(feed, text, said):
    found = feed(text)
    (refused,) = refusals(found)
    assert said in refused.reason
    assert not articles(found)


def test_a_page_that_names_its_feed_is_refused_with_a_hint(feed):
    found = feed(
        "<html><head><link rel='alternate' type='application/rss+xml' href='http://x/feed'></head>"
    )
    assert refusals(found)[0].remedy == "its feed seems to be http://x/feed"


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: None])
def test_a_directory_and_a_missing_file_give_one_refusal(tmp_path, make):
    path = tmp_path / "x.xml"
    make(path)
    (refused,) = read(path)
    assert refused.source == str(path)


def test_the_kind_is_told_by_content_not_by_name(feed):
    assert one(feed(item("<title>T</title>"), name="rows.jsonl")).title == "T"
    assert one(feed('{"title": "T", "id": "1"}\n{"title": ""}', name="feed.xml")).title == "T"
    assert one(feed('\n\n {"title": "T", "id": "1"}', name="feed.json")).title == "T"


# JSON Feed


def json_feed(items: str, more: str = "") -> str:
    return (
        f'{{"version": "https://jsonfeed.org/version/1.1", "title": "F", {more} "items": {items}}}'
    )


def test_json_feed_in_every_field(feed):
    found = feed(
        json_feed(
            '[{"id": 7, "url": "/1", "title": "T &amp; U", "content_html": "<p>One</p><p>Two</p>",'
            ' "date_published": "2026-03-09T03:00:00+01:00", "language": "fr",'
            ' "authors": [{"name": "A"}, {"name": "B"}, {}, 3]}, {"id": "x"}, "no item"]',
            '"home_page_url": "http://x/", "language": "de-de",',
        )
    )
    assert articles(found) == [
        Article(
            title="T & U",
            id="7",
            url="http://x/1",
            source="http://x/",
            body="One\nTwo",
            author="A, B",
            published_at=datetime(2026, 3, 9, 2, tzinfo=UTC),
            language="fr",
        )
    ]
    assert found[-1] == Feed("http://x/", "F", "de-DE")
    assert "entry 2" in refusals(found)[0].reason


@pytest.mark.parametrize(
    "inside",
    [
        '{"title": 3, "id": true, "url": [], "content_text": "text", "authors": "A", "language": 1}',
        '{"title": "", "content_html": "<b>text</b>", "date_published": "soon", "author": {}}',
        '{"content_text": "text\\u0000\\ud800", "date_published": 5, "authors": null}',
    ],
)
def test_json_feed_with_wrong_types_is_read_leniently(feed, inside):
    article = one(feed(json_feed(f"[{inside}]")))
    assert (article.title, article.body) == ("text", "text")
    assert article.published_at is None


def test_json_feed_with_a_date_as_in_mail(feed):
    text = json_feed('[{"title": "T", "date_published": "Fri, 31 May 2019 12:17:58 -0700"}]')
    assert one(feed(text)).published_at == datetime(2019, 5, 31, 19, 17, 58, tzinfo=UTC)


def test_json_feed_in_utf16(feed):
    assert one(feed(json_feed('[{"title": "Ж"}]').encode("utf-16"))).title == "Ж"


def test_json_nested_too_deep_is_refused(feed):
    found = feed(json_feed("[" * 200_000))
    assert "not JSON" in refusals(found)[0].reason


# bounds


def test_entries_beyond_the_limit_are_left_out_in_one_refusal(feed):
    text = item("</item><item>".join(f"<title>T{number}</title>" for number in range(30)))
    found = feed(text, replace(LIMITS, max_entries=12))
    assert [each.title for each in articles(found)] == [f"T{number}" for number in range(12)]
    (refused,) = refusals(found)
    assert refused.reason == "18 entries after the first 12 are left out"
    assert isinstance(found[-1], Feed)
    listed = json_feed("[" + ",".join('{"title": "T"}' for _ in range(30)) + "]")
    found = feed(listed, replace(LIMITS, max_entries=12))
    assert len(articles(found)) == 12
    assert "18 entries" in refusals(found)[0].reason


def test_a_file_beyond_the_size_limit_is_refused(feed):
    found = feed(item("<title>T</title>") + " " * 10_000, replace(LIMITS, max_bytes=10_000))
    assert "10,000 bytes" in refusals(found)[0].reason
    assert not articles(found)


# false encodings


RUSSIAN = (
    "Центральный банк сохранил ключевую ставку",
    "Совет директоров принял решение единогласно, сообщила пресс-служба регулятора в пятницу.",
)


@pytest.mark.parametrize(
    ("texts", "encoding", "declared", "named"),
    [
        (RUSSIAN, "koi8-r", "utf-8", "koi8-r"),
        (RUSSIAN, "koi8-r", "windows-1251", "koi8-r"),
        (RUSSIAN, "windows-1251", "utf-8", "windows-1251"),
        (RUSSIAN, "utf-8", "windows-1251", "utf-8"),
        (("台風が九州に接近", "気象庁は大雨への警戒を呼びかけています。"), "shift_jis", "utf-8", "shift_jis"),
        (("颱風警報今天發布", "氣象局提醒民眾注意防範，學校停止上課。"), "big5", "utf-8", "big5"),
        (("태풍이 남해안에 접근", "기상청은 주민들에게 대피를 권고했다고 밝혔다."), "euc-kr", "utf-8", "euc-kr"),
    ],
)  # fmt: skip
def test_a_false_declaration_is_named_and_the_text_comes_out_right(
    feed, texts, encoding, declared, named
):
    title, body = texts
    text = item(f"<title>{title}</title><description>{body}</description>")
    found = feed(f"<?xml version='1.0' encoding='{declared}'?>{text}".encode(encoding))
    article = one(found)
    assert (article.title, article.body) == texts
    (refused,) = refusals(found)
    assert declared in refused.reason
    assert named in refused.reason


def test_an_encoding_that_cannot_be_told_is_refused(feed):
    found = feed(
        b"<?xml version='1.0' encoding='utf-8'?>"
        + item("<title>@@@</title>").encode().replace(b"@@@", b"\xff\xfe\x81\x8d \x90\x9d")
    )
    (refused,) = refusals(found)
    assert "no other encoding can be told" in refused.reason
    assert not articles(found)
