"""XML from strangers: attacks are refused or harmless, in time and in memory."""

from __future__ import annotations

import re
import time
import tracemalloc

import pytest

from clustering.ingest.safexml import cut_after, document_of
from clustering.ingest.trouble import Refused
from clustering.ingest.xmlfeed import read_xml_feed

ITEM = re.compile("<item(?=[ />])")


def read(text):
    return read_xml_feed(document_of(text), None, 10_000)


def channel(inside):
    return f'<rss version="2.0"><channel><title>F</title>{inside}</channel></rss>'


@pytest.mark.parametrize(
    ("text", "root", "start"),
    [
        ("<rss>x</rss>", "rss", "<rss>"),
        ("\ufeff <?xml version='1.0'?>\n<!-- <a> --><Feed>", "feed", "<Feed>"),
        ("<!DOCTYPE rss SYSTEM 'x.dtd'><rdf:RDF a='b'>", "rdf", "<rdf:RDF"),
        ("<!DOCTYPE rss [<!ENTITY a 'b'>]><rss>", "rss", "<rss>"),
        ("Warning: line 3 < 5 in x.php\n<rss>", "rss", "<rss>"),
        ("<?php broken <rss>", "rss", "<rss>"),
    ],
)
def test_a_document_starts_at_its_root(text, root, start):
    document = document_of(text)
    assert document.root == root
    assert document.text.startswith(start)


@pytest.mark.parametrize(
    "text", ["", "words", "<", "< rss>", "<?xml version='1.0'?>", "<!-- <rss> -->"]
)
def test_without_an_element_it_is_no_xml(text):
    with pytest.raises(Refused, match="not XML"):
        document_of(text)


@pytest.mark.parametrize(
    ("written", "settled"),
    [
        ("caf&eacute; &mdash; &nbsp;x", "café — \xa0x"),
        ("&amp; &lt; &gt; &quot; &apos;", "&amp; &lt; &gt; &quot; &apos;"),
        ("&#38;#60; &#x26;", "&#38;#60; &#x26;"),
        ("&unknown; stays", "&unknown; stays"),
        ("&#0;&#x1F;&#xD800;&#x110000;&#99999999999;gone", "gone"),
        ("\x00\x08\ufffenone", "none"),
        ("?a=1&b=2", "?a=1&b=2"),
    ],
)
def test_references_are_settled(written, settled):
    assert document_of(f"<rss>{written}</rss>").text == f"<rss>{settled}</rss>"


def test_short_entities_of_the_document_are_expanded():
    text = (
        "<!DOCTYPE rss [<!ENTITY firm \"ACME & Sons\"><!ENTITY c '&#169;'>]><rss>&c; &firm;</rss>"
    )
    assert "©" in document_of(text.replace(" & ", " and ")).text
    assert "ACME and Sons" in document_of(text.replace(" & ", " and ")).text


@pytest.mark.parametrize(
    "declarations",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY a PUBLIC "x" "http://evil.example/">',
        '<!ENTITY % a "x">',
        f'<!ENTITY a "{"x" * 65}">',
    ],
)
def test_entities_that_only_attacks_have_are_refused(declarations):
    with pytest.raises(Refused, match="entit"):
        document_of(f"<!DOCTYPE rss [{declarations}]><rss>&a;</rss>")


def test_a_billion_laughs_are_refused_at_once():
    lines = ['<!ENTITY l0 "lol">'] + [
        f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)
    ]
    text = f"<!DOCTYPE rss [{''.join(lines)}]>{channel('<item><title>&l9;</title></item>')}"
    with pytest.raises(Refused, match="entities made of others"):
        document_of(text)


def test_one_entity_used_often_stays_bounded():
    text = f'<!DOCTYPE rss [<!ENTITY a "{"x" * 64}">]>{channel("&a;" * 100_000)}'
    assert len(document_of(text).text) < 7_000_000


DEEP = 200_000
ATTACKS = {
    "deep": "<a>" * DEEP,
    "deep and closed": "<a>" * DEEP + "</a>" * DEEP,
    "deep in an entry": "<item><description>" + "<div>" * DEEP,
    "many attributes": "<item " + " ".join(f"a{n}='x'" for n in range(50_000)) + ">",
    "open brackets": "<" * 500_000,
    "open comments": "<!--" * 500_000,
    "open CDATA": "<item><title><![CDATA[" * 50_000,
    "ampersands": "&" * 500_000,
    "references": "&#65;" * 400_000,
    "white space": " " * 2_000_000,
    "long author": f"<item><author>{'x@y.example ' * 100_000}</author></item>",
    "long title": f"<item><title>{'word ' * 400_000}</title></item>",
    "long link": f"<item><link>https://x.example/{'a/../' * 200_000}</link></item>",
    "long date": f"<item><pubDate>{'1' * 1_000_000}</pubDate></item>",
    "many empty tags": "<x/>" * 100_000,
    "many items": "<item/>" * 100_000,
    "many categories": "<item>" + "<category>c</category>" * 5_000 + "</item>",
    "many namespaces": "".join(f'<x:y xmlns:x="n{n}"/>' for n in range(20_000)),
    "many processing instructions": "<?x y?>" * 200_000,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_bounded(attack):
    """Ten seconds are far above what they take, and far below quadratic time."""
    text = channel(ATTACKS[attack])
    started = time.process_time()
    try:
        feed = read(text)
    except Refused:
        pass
    else:
        assert len(feed.entries) <= 10_000
    assert time.process_time() - started < 10


@pytest.mark.parametrize("attack", ["deep in an entry", "many attributes", "open CDATA"])
def test_attacks_are_bounded_in_memory(attack):
    text = channel(ATTACKS[attack])
    tracemalloc.start()
    try:
        read(text)
    except Refused:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 400_000_000


def test_nothing_is_cut_from_a_small_feed():
    document = document_of(channel("<item/><item/>"))
    assert cut_after(document, ITEM, 2) == (document.text, 0)


def test_entries_beyond_the_limit_are_cut_off_unparsed():
    items = "".join(f"<item><title>t{n}</title></item>" for n in range(12))
    feed = read_xml_feed(document_of(channel(items)), None, 10)
    assert [entry.title.value for entry in feed.entries] == [f"t{n}" for n in range(10)]
    assert feed.left_out == 2
    assert feed.title == "F"
