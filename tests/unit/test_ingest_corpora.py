"""Real and broken feeds from the test suites of feed-rs, miniflux and feedparser."""

from __future__ import annotations

import io
import time
from datetime import UTC, datetime

import pytest

from clustering.ingest import FetchLimits, read_sources
from clustering.ingest.cleaning import unstorable
from clustering.records import Article, Feed, Refusal

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def read(path):
    sources = [str(path)]
    return list(
        read_sources(sources, stdin=io.BytesIO(), validators={}, limits=FetchLimits(), now=NOW)
    )


def of(kind, records):
    return [record for record in records if isinstance(record, kind)]


@pytest.fixture(scope="module")
def folder(data):
    return data / "feeds"


@pytest.fixture(scope="module")
def outcomes(folder):
    """What every file gives, and the seconds of the slowest."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".xml", ".json"})
    slowest, records = 0.0, {}
    for path in files:
        started = time.process_time()
        records[str(path.relative_to(folder))] = read(path)
        slowest = max(slowest, time.process_time() - started)
    return records, slowest


def test_every_file_gives_articles_or_says_why_not(outcomes):
    records, slowest = outcomes
    assert len(records) == 187
    silent = [name for name, each in records.items() if not of((Article, Refusal), each)]
    assert silent == []
    assert slowest < 5


def test_every_article_can_be_stored(outcomes):
    for name, records in outcomes[0].items():
        for article in of(Article, records):
            texts = (article.title, article.body, article.id, article.source, article.author or "")
            assert not any(map(unstorable, texts)), name
            assert article.title == " ".join(article.title.split()), name
            assert article.url is None or article.url.startswith(("http://", "https://")), name
            assert article.published_at is None or article.published_at.tzinfo is UTC, name


def test_ids_are_unique_within_a_feed(outcomes):
    for name, records in outcomes[0].items():
        ids = [article.id for article in of(Article, records)]
        assert len(set(ids)) == len(ids), name


def test_a_feed_comes_after_its_articles(outcomes):
    for name, records in outcomes[0].items():
        feeds = of(Feed, records)
        if feeds:
            assert feeds == records[-1:], name
            assert {each.source for each in of(Article, records)} <= {feeds[0].address}, name


def test_every_refusal_says_what_and_what_to_do(outcomes):
    for name, records in outcomes[0].items():
        for refusal in of(Refusal, records):
            assert refusal.source.endswith(name)
            assert refusal.line is None
            assert refusal.reason
            assert refusal.remedy
            assert "\n" not in str(refusal)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "feed-rs/atom/atom_example_2.xml",
            (
                2,
                (
                    "Will someone plz dump our shizz on the Moon, NASA begs as one of the space biz "
                    "vendors drops out"
                ),
                "https://www.theregister.co.uk/science/headlines.atom",
                "en",
            ),
        ),
        (
            "feed-rs/atom/atom_mediarss_reddit_1.xml",
            (
                25,
                "Any reason to keep 1G connections to my servers?",
                "https://ud.reddit.com/r/homelab/new/.rss",
                None,
            ),
        ),
        (
            "feed-rs/jsonfeed/jsonfeed_example_1.json",
            (
                2,
                "How Jeff Bezos’s iPhone X Was Hacked",
                "https://daringfireball.net/feeds/json",
                None,
            ),
        ),
        (
            "feed-rs/rss0/rss_0.91_encoding_1.xml",
            (
                1,
                "bash - Expansão de Parâmetros",
                "http://www.dicas-l.com.br/index.xml",
                "pt-BR",
            ),
        ),
        (
            "feed-rs/rss0/rss_0.92_spec_1.xml",
            (
                3,
                "Kevin Drennan started a Grateful Dead Weblog.",
                "http://www.scripting.com/blog/categories/gratefulDead.html",
                None,
            ),
        ),
        (
            "feed-rs/rss1/rss_1.0_spec_1.xml",
            (
                2,
                "Processing Inclusions with XSLT",
                "http://xml.com/pub",
                None,
            ),
        ),
        (
            "feed-rs/rss1/rss_1.0_debian.xml",
            (
                1,
                "Updated Debian 11: 11.6 released",
                "https://www.debian.org/News/",
                "en",
            ),
        ),
        (
            "feed-rs/rss2/rss_2.0_ilmessaggero.xml",
            (
                1,
                "Missili Polonia, cosa è successo? Tensione Nato-Russia, Mosca: non siamo stati noi",
                "https://www.ilmessaggero.it",
                "it-IT",
            ),
        ),
        (
            "miniflux/parser/testdata/encoding_ISO-8859-1.xml",
            (
                40,
                "Red Dead Redemption 2: Hinweise auf PC-Umsetzung in App von Rockstar Games",
                "https://rss.golem.de/rss.php?feed=RSS2.0",
                "de",
            ),
        ),
        (
            "miniflux/parser/testdata/encoding_WINDOWS-1251.xml",
            (
                50,
                "Цитата #17703",
                "http://ibash.org.ru/",
                "ru",
            ),
        ),
        (
            "miniflux/parser/testdata/rdf_UTF8.xml",
            (
                60,
                "OLED-TVs: Vorsichtsmaßnahmen gegen Einbrennen",
                "https://www.heise.de/newsticker/",
                None,
            ),
        ),
        (
            "miniflux/parser/testdata/urdu_UTF8.xml",
            (
                26,
                "امریکی عسکری امداد کی بندش کی وجوہات: انڈیا سے جنگ، جوہری پروگرام اور اب دہشت گردوں کی پشت پناہی",
                "http://www.bbcurdu.com",
                "ur",
            ),
        ),
        (
            "miniflux/xml/testdata/koi8r.xml",
            (
                2,
                "Первая новость",
                "http://example.com/",
                "ru",
            ),
        ),
    ],
)
def test_feeds_read_by_eye(outcomes, name, expected):
    count, first, source, language = expected
    articles = of(Article, outcomes[0][name])
    assert len(articles) == count
    assert articles[0].title == first
    assert {article.source for article in articles} == {source}
    assert {article.language for article in articles} == {language}
    assert of(Refusal, outcomes[0][name]) == []


@pytest.mark.parametrize(
    ("name", "encoding", "title"),
    [
        ("koi8r", "koi8-r", "Как пережить новогоднюю ночь"),
        ("eucjp", "euc-jp", "ゲーム三昧な正月"),
        ("shiftjis", "shift_jis", "DrecomRSSに記事投稿が反映されない…"),
        ("euckr", "euc-kr", "EUC-KR 에서 TypeKey 한글닉네임 표시하기"),
        ("gb2312", "gb18030", "不归移民漫画系列：专业工作"),
    ],
)
def test_undeclared_encodings_read_right_and_are_named(outcomes, name, encoding, title):
    records = outcomes[0][f"feedparser/illformed/chardet/{name}.xml"]
    assert [article.title for article in of(Article, records)] == [title]
    (refusal,) = of(Refusal, records)
    assert refusal.reason == (
        f"no encoding declared, so utf-8, but the bytes are {encoding}; read as {encoding}"
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("feed-rs/xml/xml_sample_1.xml", "XML, but no feed (its root is <catalog>)"),
        ("miniflux/xml/testdata/iso88591.xml", "XML, but no feed (its root is <note>)"),
        ("feedparser/illformed/rss_empty_document.xml", "not XML (no element in it)"),
        ("feedparser/encoding/utf-16be-bom.xml", "a feed without entries"),
        (
            "feedparser/illformed/geo/gml_point.xml",
            "entry 1 has neither a title nor a text",
        ),
    ],
)
def test_what_is_no_feed_is_one_refusal(outcomes, name, reason):
    records = outcomes[0][name]
    assert of(Article, records) == []
    assert [refusal.reason for refusal in of(Refusal, records)] == [reason]


def test_relative_links_are_resolved(outcomes):
    urls = {
        name: [article.url for article in of(Article, outcomes[0][f"feed-rs/{name}"])]
        for name in (
            "atom/atom_relative.xml",
            "atom/atom_xml_base.xml",
            "rss2/rss_2.0_relurl_1.xml",
        )
    }
    assert urls["atom/atom_relative.xml"] == ["https://example.com/blog/2003/12/13/atom03"]
    assert urls["atom/atom_xml_base.xml"][0].startswith("https://numi.st/post/2022/trav")
    assert urls["rss2/rss_2.0_relurl_1.xml"][0].startswith("https://insanity.industries/post/")


def test_reading_again_gives_the_same(folder, outcomes):
    for name in ("feed-rs/rss2/rss_2.0_ghost_1.xml", "miniflux/parser/testdata/rdf_UTF8.xml"):
        assert read(folder / name) == outcomes[0][name]
