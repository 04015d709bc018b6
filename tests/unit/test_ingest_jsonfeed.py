"""JSON Feed, by its specification and by what is made of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from clustering.ingest.jsonfeed import looks_like_json_feed, read_json_feed
from clustering.ingest.trouble import Refused

FEED = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "North &amp; South",
    "home_page_url": "https://north.example/",
    "feed_url": "https://north.example/feed.json",
    "language": "en-GB",
    "items": [],
}


def read(*items, most=10_000, **changes):
    return read_json_feed(json.dumps(FEED | changes | {"items": list(items)}).encode(), most)


def test_the_feed_itself():
    feed = read()
    assert feed.title == "North & South"
    assert feed.language == "en-GB"
    assert feed.self_url == "https://north.example/feed.json"
    assert feed.site_url == "https://north.example/"
    assert (list(feed.entries), feed.left_out) == ([], 0)


def test_an_item_with_everything():
    (entry,) = read(
        {
            "id": "1",
            "url": "https://north.example/1",
            "external_url": "https://other.example/",
            "title": "T",
            "content_html": "<p>H</p>",
            "content_text": "C",
            "summary": "S",
            "date_published": "2026-03-09T10:00:00+02:00",
            "date_modified": "2026-03-09T11:00:00Z",
            "authors": [{"name": "A"}, {"url": "x"}, "junk", {"name": "B"}],
            "language": "fr",
        }
    ).entries
    assert entry.title.value == "T"
    assert [(body.value, body.html) for body in entry.bodies] == [
        ("<p>H</p>", True),
        ("C", False),
        ("S", False),
    ]
    assert (entry.id, entry.link, entry.language) == ("1", "https://north.example/1", "fr")
    assert entry.author == "A, B"
    assert entry.dates == [
        datetime(2026, 3, 9, 8, tzinfo=UTC),
        datetime(2026, 3, 9, 11, tzinfo=UTC),
    ]


def test_an_item_with_nothing_or_wrong_types():
    first, second = read({}, {"id": 5, "title": 1, "url": [], "author": {"name": "Old"}}).entries
    assert (first.title, first.bodies, first.id, first.link) == (None, [], None, None)
    assert (second.id, second.title, second.link, second.author) == ("5", None, None, "Old")
    assert read({"id": True}).entries[0].id is None
    assert read({"date_published": "soon"}).entries[0].dates == []


def test_items_that_are_no_objects_are_passed_over():
    assert len(read("junk", None, {"id": "1"}).entries) == 1


def test_items_beyond_the_limit_are_counted():
    feed = read(*[{"id": str(number)} for number in range(5)], most=3)
    assert [entry.id for entry in feed.entries] == ["0", "1", "2"]
    assert feed.left_out == 2


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": "\xff"}', "not JSON"),
        (b"[]", "no JSON Feed|nor a JSON Feed"),
        (b'{"rows": []}', "nor a JSON Feed"),
        (b'{"items": {}}', "nor a JSON Feed"),
    ],
)
def test_json_that_is_no_feed(data, said):
    with pytest.raises(Refused, match=said):
        read_json_feed(data, 10)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32-be"])
def test_encodings_that_json_may_have(encoding):
    data = json.dumps(FEED | {"title": "Ünïcode"}, ensure_ascii=False).encode(encoding)
    assert read_json_feed(data, 10).title == "Ünïcode"


@pytest.mark.parametrize(
    ("head", "is_feed"),
    [
        (b'{"version": "https://jsonfeed.org/version/1"', True),
        (b'{"version":"http:\\/\\/www.jsonfeed.org\\/version\\/1.1"', True),
        (b'{"title": "about \\"version\\": \\"https://jsonfeed.org/version/1\\""}', False),
        (b'{"version": "2.0"}', False),
        (b"", False),
    ],
)
def test_a_json_feed_is_told_by_its_version(head, is_feed):
    assert looks_like_json_feed(head) is is_feed
