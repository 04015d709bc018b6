"""Documents that attack their reader: refused, or read in bounded time and memory."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from clustering.ingest import FetchLimits, read_sources
from clustering.records import Article, Refusal

NOW = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def feed(tmp_path):
    """Reads a document that a file holds."""

    def read_text(text: str):
        path = tmp_path / "feed.xml"
        path.write_text(text)
        return list(
            read_sources(
                [str(path)], stdin=io.BytesIO(), validators={}, limits=FetchLimits(), now=NOW
            )
        )

    return read_text


def item(inside: str) -> str:
    return f"<rss version='2.0'><channel><title>F</title><item>{inside}</item></channel></rss>"


BOMB = "<!DOCTYPE rss [<!ENTITY a '{}'>{}]>"


@pytest.mark.parametrize(
    "doctype",
    [
        BOMB.format("ha" * 20, "".join(f"<!ENTITY a{n} '&a;&a;&a;&a;&a;'>" for n in range(9))),
        BOMB.format("x" * 1_000_000, ""),
        "<!DOCTYPE rss [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>",
        "<!DOCTYPE rss [<!ENTITY % x SYSTEM 'http://x/x.dtd'> %x;]>",
    ],
)
def test_entity_bombs_and_external_entities_are_refused(feed, doctype):
    found = feed(f"<?xml version='1.0'?>{doctype}{item('<title>&a;&a8;&x;</title>')}")
    (refused,) = found
    assert isinstance(refused, Refusal)
    assert "it declares" in refused.reason


def test_harmless_entities_are_settled(feed):
    doctype = "<!DOCTYPE rss [<!ENTITY copy2 '(C)'><!ENTITY thin \"&#8201;\">]>"
    assert [
        each.title
        for each in feed(f"{doctype}{item('<title>&copy2; x</title>')}")
        if isinstance(each, Article)
    ] == ["(C) x"]


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("<a>" * 60_000 + "</a>" * 60_000, "nest deeper than 50,000"),
        ("<x " + "a='b' " * 20_001 + "/>", "thousands of attributes"),
        (f"<author>{'a' * 2_001}</author>", "an author of more than 2,000"),
    ],
)
def test_what_only_an_attack_has_is_refused(feed, inside, said):
    (refused,) = feed(item(f"<title>T</title>{inside}"))
    assert said in refused.reason


HALF = 2**19


HOSTILE = [
    "\n" * HALF + item("<title>T</title>"),
    item("<title>T</title>" + "<a>" * (HALF // 3)),
    item("<title>T</title>" + "<a>" * 40_000 + "</a>" * 40_000),
    item("<title>" + "&" * HALF + "</title>"),
    item("<title>" + "<" * HALF),
    item("<title>T</title><author>" + "a" * HALF + "</author>"),
    item("<title>T</title><author><b></b>" + "a" * HALF + "</author>"),
    item("<title>T</title><dc:creator>" + "a" * HALF + "</dc:creator>"),
    item("<title>T</title><x " + "a='b' " * (HALF // 6) + "/>"),
    item("<title>T</title><x " + "=" * HALF),
    item("<title>T</title>" + "<![CDATA[" * (HALF // 9)),
    item("<title>T</title>" + "<!x" * (HALF // 3)),
    item("<title>T</title><pubDate>" + "1:" * (HALF // 2) + "</pubDate>"),
    item("<description>" + "&lt;div&gt;" * 100_000 + "</description>"),
    "<!DOCTYPE " + "[" * HALF + item("<title>T</title>"),
    "<!DOCTYPE [>" * (HALF // 12) + item("<title>T</title>"),
    "<?" * (HALF // 2) + item("<title>T</title>"),
    "<!--" * (HALF // 4) + item("<title>T</title>"),
    item("</item><item>" * (HALF // 13)),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_documents_do_not_take_long(feed, text):
    """Half a mebibyte each; ill-formed input costs feedparser about 3 s a megabyte."""
    started = time.process_time()
    assert feed(text)
    assert time.process_time() - started < 5


def test_hostile_documents_take_no_memory(tmp_path):
    """All of them in a process of their own, whose highest use is measured."""
    for number, text in enumerate(HOSTILE):
        (tmp_path / f"{number}.xml").write_text(text)
    paths = [str(tmp_path / f"{number}.xml") for number in range(len(HOSTILE))]
    script = (
        "import io, sys; from datetime import UTC, datetime\n"
        "from clustering.ingest import FetchLimits, read_sources\n"
        "for _ in read_sources(sys.argv[1:], stdin=io.BytesIO(), validators={},\n"
        "                      limits=FetchLimits(), now=datetime(2026, 7, 1, tzinfo=UTC)): pass\n"
        # Not ru_maxrss, which a child takes over from whoever started it.
        "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 400_000  # KiB
