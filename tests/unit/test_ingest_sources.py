"""Sources of every kind together: their order, their kinds, and each only once."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest
from ingest_server import body, serving

import clustering.ingest
from clustering.ingest import DateBounds, FetchLimits, read_sources
from clustering.ingest.kinds import kind_of
from clustering.records import Article, Feed, Refusal

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
RSS = b"<rss version='2.0'><channel><title>F</title><item><title>fed</title></item></channel></rss>"
ROW = b'{"title": "row", "id": "1"}\n'


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def read(*sources, stdin=b"", **more):
    return list(
        read_sources(
            [str(source) for source in sources],
            stdin=io.BytesIO(stdin),
            validators={},
            limits=FetchLimits(total_seconds=10),
            now=NOW,
            **more,
        )
    )


def shown(found):
    names = {Article: "title", Feed: "title", Refusal: "reason"}
    return [getattr(each, names[type(each)]) for each in found]


def test_the_order_is_that_of_the_sources(tmp_path):
    rows, feed = tmp_path / "rows.jsonl", tmp_path / "feed.xml"
    rows.write_bytes(ROW)
    feed.write_bytes(RSS)
    with serving({"/": body(RSS.replace(b"fed", b"fetched"))}) as server:
        found = read(
            server.url("/"), rows, "-", tmp_path / "none", feed, stdin=ROW.replace(b"row", b"in")
        )
    assert shown(found) == ["fetched", "F", "row", "in", "no such file", "fed", "F"]


def test_each_source_is_read_once(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROW)
    with serving({"/": body(RSS)}) as server:
        assert shown(read(path, server.url("/"), path, "-", server.url("/"), "-", stdin=ROW)) == [
            "row", "fed", "F", "row",
        ]  # fmt: skip
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("name", "data", "titles"),
    [
        ("a.jsonl", ROW, ["row"]),
        ("a.jsonl.gz", gzip.compress(ROW, mtime=0), ["row"]),
        ("a.jsonl", gzip.compress(ROW), ["row"]),
        ("a", ROW + ROW, ["row", "row"]),
        ("a.json", b"\xef\xbb\xbf\r\n" + ROW, ["row"]),
        ("a.xml", RSS, ["fed", "F"]),
        ("a.xml.gz", gzip.compress(RSS), ["fed", "F"]),
        ("a", b"\xef\xbb\xbf \n" + RSS, ["fed", "F"]),
        ("a.jsonl", RSS, ["fed", "F"]),
        ("a.xml", b"<br />\n<b>Warning</b>: x in y.php\n<?xml version='1.0'?>" + RSS, ["fed", "F"]),
        ("a.xml", b"Warning: x in y.php on line 3\n<?xml version='1.0'?>" + RSS, ["fed", "F"]),
        ("a.xml", "<?xml version='1.0'?>".encode("utf-16") + RSS.decode().encode("utf-16-le"), ["fed", "F"]),
        ("a.jsonl", b"no json\n", ["not JSON (Expecting value, column 1)"]),
        ("a.txt", b"no json\n", ["neither a feed nor OPML nor JSON Lines"]),
        ("a.jsonl", ROW.decode().encode("utf-16"), None),
    ],
    ids=range(15),
)  # fmt: skip
def test_the_kind_is_told_by_content(tmp_path, name, data, titles):
    path = tmp_path / name
    path.write_bytes(data)
    found = read(path)
    assert found
    if titles is None:
        assert all(isinstance(each, Refusal) for each in found)
    else:
        assert shown(found) == titles


def test_json_lines_over_http():
    with serving({"/rows.jsonl": body(ROW * 2), "/gz": body(gzip.compress(ROW))}) as server:
        assert shown(read(server.url("/rows.jsonl"), server.url("/gz"))) == ["row"] * 3


def test_feed_addresses_with_the_old_scheme():
    with serving({"/": body(RSS)}) as server:
        plain = server.url("/")
        for address in (
            f"feed:{plain}",
            plain.replace("http:", "feed:"),
            plain.replace("http", "HTTP"),
        ):
            article, feed = read(address)
            assert isinstance(article, Article)
            assert isinstance(feed, Feed)


def test_a_page_instead_of_a_feed_names_the_feed():
    page = (
        b"<!doctype html><html><link rel=alternate type='application/atom+xml' href='/atom'></html>"
    )
    with serving({"/a/b": body(page)}) as server:
        (refused,) = read(server.url("/a/b"))
        assert refused.reason == "an HTML page, not a feed"
        assert refused.remedy.endswith(server.url("/atom"))


def test_a_damaged_gzip_file_gives_one_refusal(tmp_path):
    path = tmp_path / "feed.xml.gz"
    path.write_bytes(gzip.compress(RSS)[:-30])
    (refused,) = read(path)
    assert "gzip data break off" in refused.reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(ROW)
    path.chmod(0)
    (refused,) = read(path)
    assert "Permission denied" in refused.reason


def test_names_that_no_file_can_have_are_refused():
    for name in ("a\0b", "x" * 5_000, "", "ftp://x/feed"):
        (refused,) = read(name)
        assert refused.source == name


def test_file_names_that_are_no_utf_8_can_be_stored(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.xml")
    path.write_bytes(RSS)
    article, feed, refused = read(path, f"{path}x")
    assert article.source == feed.address == f"{tmp_path}/caf\\udce9.xml"
    assert refused.source == f"{tmp_path}/caf\\udce9.xmlx"


def test_a_named_pipe_is_read_like_a_file(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(ROW * 3))
    writer.start()
    assert shown(read(pipe)) == ["row"] * 3
    writer.join()


def test_wider_bounds_let_old_dates_through(tmp_path):
    row = b'{"title": "old", "id": "1", "published_at": "1912-04-15"}'
    everything = DateBounds(datetime(1900, 1, 1, tzinfo=UTC), NOW)
    assert shown(read("-", stdin=row, bounds=everything)) == ["old"]
    assert "1912-04-15" in shown(read("-", stdin=row))[0]


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"", "a", "empty"),
        (b"\n\t ", "a", "empty"),
        (b" " * 5_000, "a", "unknown"),
        (b"\xff\xfe<\0r\0s\0s\0", "a", "xml"),
        (b"\0\0\0<", "a", "xml"),
        (b'{"version": "https://jsonfeed.org/version/1"}', "a.jsonl", "json"),
        (b'{"version":"https:\\/\\/jsonfeed.org\\/version\\/1"', "a", "json"),
        (b'{"title": "T"}\n{', "a.json", "lines"),
        (b'{\n "title": "T"\n}', "a.json", "json"),
        (b'{\n "title": "T"\n}', "a.jsonl", "lines"),
        (b'{"title": "' + b"x" * 65_525, "a", "lines"),
        (b"[1]", "a", "json"),
        (b"[1]", "a.JSONL", "lines"),
        (b"text", "a", "unknown"),
        (b"text", "a.ndjson.gz", "lines"),
    ],
)
def test_kind_of_a_beginning(head, name, kind):
    assert kind_of(head, name) == kind


def test_the_public_names_are_sorted_and_there():
    names = clustering.ingest.__all__
    assert names == sorted(names)
    assert all(hasattr(clustering.ingest, name) for name in names)


def test_importing_the_readers_loads_no_parser():
    script = (
        "import sys, clustering.ingest; heavy = {'httpx', 'feedparser', 'selectolax', 'langdetect', "
        "'charset_normalizer', 'torch', 'numpy'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
