"""Feeds over HTTP from a real server: validators, limits, and every way to fail."""

from __future__ import annotations

import gzip
import io
import socket
import threading
import time
import tracemalloc
import zlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from ingest_server import body, serving

from clustering.ingest import FetchLimits, read_sources
from clustering.ingest.fetch import decoded
from clustering.ingest.trouble import Refused
from clustering.records import Article, Feed, Refusal

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
LIMITS = FetchLimits(max_bytes=200_000, total_seconds=10, connect_seconds=3)
HASTY = replace(LIMITS, total_seconds=0.6)


def rss(title: str, items: int = 1) -> bytes:
    entries = "".join(
        f"<item><title>{title} {n}</title><guid isPermaLink='false'>{title}{n}</guid></item>"
        for n in range(items)
    )
    return f"<rss version='2.0'><channel><title>{title}</title>{entries}</channel></rss>".encode()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def read(*sources, limits=LIMITS, validators=None):
    return list(
        read_sources(
            sources, stdin=io.BytesIO(), validators=validators or {}, limits=limits, now=NOW
        )
    )


def refusal_of(page, *, limits=LIMITS):
    with serving({"/": page}) as server:
        (refused,) = read(server.url("/"), limits=limits)
    assert isinstance(refused, Refusal)
    assert refused.source == server.url("/")
    assert refused.remedy
    return refused.reason


def test_articles_come_first_and_then_their_feed():
    page = body(rss("A", 2), etag='"v1"', last_modified="Mon, 09 Mar 2026 03:00:00 GMT")
    with serving({"/a": page}) as server:
        first, second, feed = read(server.url("/a"))
        ((path, headers),) = server.requests
    assert [first.title, second.title] == ["A 0", "A 1"]
    assert {first.source, second.source} == {server.url("/a")}
    assert feed == Feed(
        server.url("/a"), "A", etag='"v1"', last_modified="Mon, 09 Mar 2026 03:00:00 GMT"
    )
    assert path == "/a"
    assert headers["User-Agent"].startswith("story-clustering/")
    assert "If-None-Match" not in headers


def test_validators_are_sent_and_an_unchanged_feed_yields_nothing():
    def page(handler):
        fresh = handler.headers["If-None-Match"] != '"v1"'
        handler.start(200 if fresh else 304, etag='"v1"', connection="close")
        if fresh:
            handler.wfile.write(rss("A"))

    with serving({"/a": page}) as server:
        *_, feed = read(server.url("/a"))
        known = replace(feed, last_modified="Mon, 09 Mar 2026 03:00:00 GMT")
        assert read(server.url("/a"), validators={feed.address: known}) == []
        headers = server.requests[-1][1]
    assert headers["If-None-Match"] == '"v1"'
    assert headers["If-Modified-Since"] == "Mon, 09 Mar 2026 03:00:00 GMT"


def test_redirects_are_followed_and_the_address_asked_for_stays_the_source():
    def moved(handler):
        handler.start(301, location="/new", content_length="0")

    with serving({"/old": moved, "/new": body(rss("A"))}) as server:
        article, feed = read(server.url("/old"))
    assert article.source == feed.address == server.url("/old")


def test_relative_links_start_from_where_the_feed_was_found():
    page = body(
        b"<rss version='2.0'><channel><title>A</title><item><title>T</title>"
        b"<link>../news/1</link></item></channel></rss>"
    )
    with serving({"/feeds/a": page}) as server:
        article, _ = read(server.url("/feeds/a"))
    assert article.url == server.url("/news/1")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (404, "HTTP 404"),
        (500, "HTTP 500"),
        (403, "HTTP 403"),
        (410, "HTTP 410"),
        (429, "HTTP 429"),
        (204, "HTTP 204"),
        (300, "HTTP 300"),
    ],
)
def test_other_answers_are_refused_by_their_status(status, said):
    assert said in refusal_of(lambda handler: handler.start(status, connection="close"))


def test_a_redirect_loop_ends():
    def around(handler):
        handler.start(302, location="/", content_length="0")

    with serving({"/": around}) as server:
        (refused,) = read(server.url("/"))
        assert len(server.requests) == LIMITS.redirects + 1
    assert refused.reason == "more than 5 redirects"


def test_five_redirects_are_followed():
    def step(number):
        return lambda handler: handler.start(307, location=f"/{number}", content_length="0")

    pages = {f"/{number}": step(number + 1) for number in range(5)} | {"/5": body(rss("A"))}
    with serving(pages) as server:
        article, _ = read(server.url("/0"))
    assert article.title == "A 0"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://x/"])
def test_a_redirect_away_from_http_is_refused(target):
    said = refusal_of(lambda handler: handler.start(302, location=target, content_length="0"))
    assert "no http" in said


def test_the_body_of_a_redirect_is_not_read():
    def endless(handler):
        handler.start(302, location="/a")
        while True:
            handler.wfile.write(b"x" * 65_536)

    with serving({"/": endless, "/a": body(rss("A"))}) as server:
        article, _ = read(server.url("/"))
    assert article.title == "A 0"


def test_an_endless_body_is_cut_off_at_the_limit():
    def endless(handler):
        handler.start()
        while True:
            handler.wfile.write(b"<item/>" * 10_000)

    assert refusal_of(endless) == "more than 200,000 bytes, decompressed"


def test_a_body_of_exactly_the_limit_is_read():
    padded = rss("A") + b"\n" * (200_000 - len(rss("A")))
    with serving({"/": body(padded), "/more": body(padded + b"\n")}) as server:
        article, _, refused = read(server.url("/"), server.url("/more"))
    assert article.title == "A 0"
    assert "200,000 bytes" in refused.reason


def test_gzip_is_undone():
    packed = gzip.compress(rss("A"))
    deflated = zlib.compress(rss("B"))
    pages = {
        "/a": body(packed, content_encoding="gzip"),
        "/b": body(deflated, content_encoding="deflate"),
        "/c": body(packed, content_type="application/gzip"),
        "/d": body(packed + packed[:0] + gzip.compress(b"<!-- -->"), content_encoding="x-gzip"),
    }
    with serving(pages) as server:
        titles = [each.title for each in read(*map(server.url, pages)) if isinstance(each, Article)]
        assert server.requests[0][1]["Accept-Encoding"] == "gzip"
    assert titles == ["A 0", "B 0", "A 0", "A 0"]


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_gzip_bomb_takes_no_memory(coding):
    """100 MB of zeros in 100 KB; a second layer would make 100 GB of them."""
    bomb = gzip.compress(bytes(100_000_000)) if coding == "gzip" else zlib.compress(bytes(10**8))
    with serving({"/": body(bomb, content_encoding=coding)}) as server:
        tracemalloc.start()
        (refused,) = read(server.url("/"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert refused.reason == "more than 200,000 bytes, decompressed"
    assert peak < 10_000_000


def test_a_bomb_inside_a_gzipped_file_takes_no_memory_either():
    bomb = gzip.compress(gzip.compress(bytes(100_000_000)))
    assert "200,000 bytes" in refusal_of(body(bomb, content_encoding="gzip"))


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "zstd", "nonsense"])
def test_codings_not_asked_for_are_refused(coding):
    assert coding in refusal_of(body(b"xxxx", content_encoding=coding))


def test_a_truncated_gzip_answer_is_refused():
    packed = gzip.compress(rss("A", 100))[:-20]
    assert "breaks off" in refusal_of(body(packed, content_encoding="gzip"))
    assert "damaged" in refusal_of(body(b"\x1f\x8b garbage", content_encoding="gzip"))


def test_a_body_shorter_than_announced_is_refused():
    def short(handler):
        handler.start(content_length="5000")
        handler.wfile.write(rss("A"))

    assert "broke off" in refusal_of(short)


def drip(handler):
    handler.start()
    for _ in range(100):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.1)


def drip_headers(handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(100):
        handler.wfile.write(f"X-{number}: x\r\n".encode())
        handler.wfile.flush()
        time.sleep(0.1)


def hang(handler):
    time.sleep(5)


@pytest.mark.parametrize("slow", [drip, drip_headers, hang])
def test_slow_answers_end_at_the_deadline(slow):
    started = time.monotonic()
    assert refusal_of(slow, limits=HASTY) == "no complete answer within 0.6 seconds"
    assert time.monotonic() - started < 3


def test_the_deadline_covers_redirects():
    def slow_step(handler):
        time.sleep(0.25)
        handler.start(302, location="/", content_length="0")

    assert refusal_of(slow_step, limits=HASTY) == "no complete answer within 0.6 seconds"


def test_the_deadline_holds_for_the_last_of_several_connections():
    def moved(handler):
        handler.start(302, location="/slow", content_length="0")

    with serving({"/": moved, "/slow": drip_headers}) as server:
        started = time.monotonic()
        (refused,) = read(server.url("/"), limits=HASTY)
    assert refused.reason == "no complete answer within 0.6 seconds"
    assert time.monotonic() - started < 3


def test_a_refused_connection_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (refused,) = read(f"http://127.0.0.1:{port}/feed")
    assert refused.reason == "the server refuses the connection"


def test_an_unknown_host_is_named():
    (refused,) = read("http://no-such-host.invalid/feed")
    assert refused.reason == "the host's name cannot be resolved"


def test_no_tls_on_the_other_side_is_named():
    with serving({}) as server:
        (refused,) = read(server.url("/").replace("http:", "https:"))
    assert "no secure connection" in refused.reason


def test_no_http_on_the_other_side_is_named():
    def answer(listener):
        connection, _ = listener.accept()
        connection.recv(65_536)
        connection.sendall(b"220 mail.example ESMTP\r\n")
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        (refused,) = read(f"http://127.0.0.1:{listener.getsockname()[1]}/")
    assert "broke off" in refused.reason


@pytest.mark.parametrize("address", ["http://", "http://[::1", "http://a:b:c/", "http://\x7f/"])
def test_addresses_that_are_none_are_refused(address):
    (refused,) = read(address)
    assert isinstance(refused, Refusal)
    assert refused.source == address


def test_the_content_type_does_not_matter():
    types = ["text/html", "application/octet-stream", "image/png", "nonsense"]
    pages = {f"/{number}": body(rss("A"), content_type=kind) for number, kind in enumerate(types)}
    with serving(pages) as server:
        found = read(*map(server.url, pages))
    assert [type(each) for each in found] == [Article, Feed] * len(types)


def test_a_charset_of_the_content_type_is_heard():
    text = "<rss version='2.0'><channel><title>Новости</title><item><title>Выборы прошли спокойно, "
    text += "сообщает комиссия</title><guid>1</guid></item></channel></rss>"
    page = body(text.encode("koi8-r"), content_type="text/xml; charset=KOI8-R")
    with serving({"/": page}) as server:
        article, feed = read(server.url("/"))
    assert article.title == "Выборы прошли спокойно, сообщает комиссия"
    assert feed.title == "Новости"


def test_one_hanging_feed_stops_no_other_and_the_order_stays():
    pages = {f"/{number}": body(rss(f"F{number}")) for number in range(12)}
    pages["/3"] = hang
    pages["/7"] = lambda handler: handler.start(500, connection="close")
    with serving(pages) as server:
        found = read(*map(server.url, pages), limits=replace(HASTY, parallel=4))
    shown = [
        each.title if isinstance(each, Article) else each.reason[:20]
        for each in found
        if not isinstance(each, Feed)
    ]
    assert shown == [
        "F0 0", "F1 0", "F2 0", "no complete answer w", "F4 0", "F5 0", "F6 0",
        "the server answers H", "F8 0", "F9 0", "F10 0", "F11 0",
    ]  # fmt: skip


def test_several_feeds_are_fetched_at_once():
    together = threading.Barrier(4, timeout=5)

    def page(handler):
        together.wait()
        body(rss("A"))(handler)

    with serving({f"/{number}": page for number in range(4)}) as server:
        found = read(*(server.url(f"/{number}") for number in range(4)))
    assert sum(isinstance(each, Article) for each in found) == 4


def test_no_more_than_the_limit_at_once():
    running, most, lock = 0, 0, threading.Lock()

    def page(handler):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)
        with lock:
            running -= 1
        body(rss("A"))(handler)

    with serving({f"/{number}": page for number in range(9)}) as server:
        read(*(server.url(f"/{number}") for number in range(9)), limits=replace(LIMITS, parallel=3))
    assert most == 3


def test_a_stream_that_is_given_up_leaves_no_thread_behind():
    with serving({f"/{number}": body(rss("A")) for number in range(20)}) as server:
        before = threading.active_count()
        stream = read_sources(
            [server.url(f"/{number}") for number in range(20)],
            stdin=io.BytesIO(),
            validators={},
            limits=replace(LIMITS, parallel=2),
            now=NOW,
        )
        assert isinstance(next(stream), Article)
        stream.close()
        assert not [each for each in threading.enumerate() if each.name.startswith("fetch")]
        assert threading.active_count() <= before + 20


def test_decoded_counts_what_was_sent_as_well():
    """An endless stream of empty members decompresses to nothing at all."""
    empty = gzip.compress(b"")

    def members():
        while True:
            yield empty

    with pytest.raises(Refused, match="more than 1,000 bytes"):
        decoded(members(), "gzip", 1_000)


def test_decoded_ignores_rubbish_after_the_last_member():
    assert decoded([gzip.compress(b"a"), b"\0\0padding"], "gzip", 1_000) == b"a"
