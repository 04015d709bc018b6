"""JSON Lines: what goes through, what is refused, by line and with a reason."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from datetime import UTC, datetime

import pytest

from clustering.ingest import DateBounds, FetchLimits, article_from_row, read_rows, read_sources
from clustering.ingest.jsonl import MAX_LINE_BYTES
from clustering.records import Article, Refusal

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
BOUNDS = DateBounds.around(NOW)


def read(data: bytes) -> list[Article | Refusal]:
    """Read bytes as standard input."""
    return list(
        read_sources(["-"], stdin=io.BytesIO(data), validators={}, limits=FetchLimits(), now=NOW)
    )


def read_row(**fields: object) -> Article | Refusal:
    (only,) = read(json.dumps(fields).encode())
    return only


def reason(**fields: object) -> str:
    refused = read_row(**fields)
    assert isinstance(refused, Refusal)
    assert (refused.source, refused.line) == ("-", 1)
    assert refused.remedy
    return refused.reason


def test_a_full_row_becomes_an_article():
    assert read_row(
        id="g1",
        source="North Wire",
        url="https://north.example/1",
        title="Storm nears coast",
        body="Winds rose. Ports closed.",
        author="E. Drayford",
        published_at="2026-03-09T03:41:54Z",
        language="pt-br",
        story=7,
    ) == Article(
        title="Storm nears coast",
        id="g1",
        url="https://north.example/1",
        source="North Wire",
        body="Winds rose. Ports closed.",
        author="E. Drayford",
        published_at=datetime(2026, 3, 9, 3, 41, 54, tzinfo=UTC),
        language="pt-BR",
    )


@pytest.mark.parametrize(
    ("fields", "source", "identifier"),
    [
        ({"url": "https://www.north.example/1"}, "north.example", None),
        ({"url": "https://North.Example:8080/1"}, "north.example", None),
        ({"url": "not an address"}, "unknown", None),
        ({"url": "http://[half"}, "unknown", None),
        ({"id": "a"}, "unknown", "a"),
        ({"id": 42}, "unknown", "42"),
        ({"id": 0}, "unknown", "0"),
        ({"id": "a", "source": "  "}, "unknown", "a"),
        ({"id": "a", "source": None, "url": None}, "unknown", "a"),
    ],
)
def test_only_a_title_and_one_of_id_and_url_are_needed(fields, source, identifier):
    article = read_row(title="T", **fields)
    assert isinstance(article, Article)
    assert (article.source, article.id) == (source, identifier)
    assert (article.body, article.author, article.published_at) == ("", None, None)


def test_summary_stands_in_for_a_body_that_is_absent_or_blank():
    assert read_row(title="T", id="1", summary="short").body == "short"
    assert read_row(title="T", id="1", summary="short", body=" ").body == "short"
    assert read_row(title="T", id="1", summary="short", body="long").body == "long"


def test_markup_and_line_breaks_leave_the_title():
    article = read_row(title="Fish &amp; <b>chips</b>\n up", id="1", body="<p>One</p><p>Two</p>")
    assert article.title == "Fish & chips up"
    assert article.body == "One\nTwo"


@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("2026-03-09T03:41:54Z", 3),
        ("2026-03-09T03:41:54", 3),
        ("2026-03-09 03:41:54", 3),
        ("2026-03-09T03:41:54+02:00", 1),
        ("2026-03-09T03:41:54.250-0500", 8),
        ("20260309T034154Z", 3),
        ("2026-03-09", 0),
    ],
)
def test_iso_dates_with_and_without_zone(written, hour):
    article = read_row(title="T", id="1", published_at=written)
    assert article.published_at.date().isoformat() == "2026-03-09"
    assert article.published_at.hour == hour
    assert article.published_at.utcoffset().total_seconds() == 0


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": "1"}, "no title"),
        ({"id": "1", "title": None}, "no title"),
        ({"id": "1", "title": " \n\t "}, "no title"),
        ({"id": "1", "title": "<br>"}, "no title"),
        ({"title": "T"}, "no id and no url"),
        ({"title": "T", "id": "  ", "url": ""}, "no id and no url"),
        ({"title": 3, "id": "1"}, '"title" is a number, not text'),
        ({"title": ["T"], "id": "1"}, '"title" is an array, not text'),
        ({"title": "T", "id": True}, '"id" is true, not text'),
        ({"title": "T", "id": 1.5}, '"id" is a number, not text'),
        ({"title": "T", "id": {"a": 1}}, '"id" is an object, not text'),
        ({"title": "T", "id": "1", "url": 1}, '"url" is a number, not text'),
        ({"title": "T", "id": "1", "body": False}, '"body" is false, not text'),
        ({"title": "T", "id": "1", "source": []}, '"source" is an array, not text'),
        ({"title": "T", "id": "1", "language": 5}, '"language" is a number, not text'),
        ({"title": "T", "id": "1", "published_at": 1772000000}, "is a number, not text"),
        ({"title": "T", "id": "1", "published_at": "yesterday"}, "is no date ('yesterday')"),
        ({"title": "T", "id": "1", "published_at": "2026-13-01"}, "is no date"),
        ({"title": "T", "id": "1", "published_at": "1970-01-01"}, "is 1970-01-01, not between"),
        ({"title": "T", "id": "1", "published_at": "1989-12-31T23:59:59Z"}, "not between 1990"),
        ({"title": "T", "id": "1", "published_at": "2026-03-11T12:00:01Z"}, "not between"),
        ({"title": "T", "id": "1", "published_at": "0001-01-01T00:00:00+10:00"}, "is no date"),
        ({"title": "a\0b", "id": "1"}, '"title" has a NUL character'),
        ({"title": "T", "id": "1\0"}, '"id" has a NUL character'),
        ({"title": "T", "id": "1", "body": "\ud83d"}, '"body" has a lone surrogate'),
        ({"title": "T", "id": "1", "author": "\udc00x"}, '"author" has a lone surrogate'),
        ({"title": "T" * 10_001, "id": "1"}, '"title" has 10,001 characters'),
        ({"title": "T", "id": "1", "body": "b" * 1_000_001}, '"body" has 1,000,001 characters'),
    ],
)
def test_rows_that_are_refused(fields, said):
    assert said in reason(**fields)


def test_the_limits_themselves_are_allowed():
    article = read_row(
        title="T" * 10_000, id="1", body="b" * 1_000_000, published_at="2026-03-11T12:00:00Z"
    )
    assert isinstance(article, Article)
    assert read_row(title="T", id="1", published_at="1990-01-01").published_at.year == 1990


def test_a_surrogate_pair_is_one_character():
    (article,) = read(rb'{"title": "\ud83d\ude00", "id": "1"}')
    assert article.title == "😀"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"no json", "not JSON"),
        (b'{"title": "T", "id": "1"', "not JSON"),
        (b'{"title": "T", "id": "1"} {}', "not JSON"),
        (b'{"title": "T\x00", "id": "1"}', "NUL character"),
        (b'["T"]', "not an object but an array"),
        (b"null", "not an object but null"),
        (b'"T"', "not an object but text"),
        (b"3", "not an object but a number"),
        (b'{"title": "caf\xe9", "id": "1"}', "not UTF-8 (byte 15 of the line)"),
        (b"[" * 200_000, "not JSON"),
        (b'{"title": "T", "id": ' + b"9" * 5_000 + b"}", "not JSON"),
        (b'{"title": "T", "id": NaN}', "not JSON"),
    ],
)
def test_lines_that_are_no_rows(line, said):
    good = b'{"title": "good", "id": "1"}'
    before, refused, after = read(b"\n".join((good, line, good)))
    assert before.title == after.title == "good"
    assert refused.line == 2
    assert said in refused.reason
    assert "\n" not in str(refused)


def test_blank_lines_are_skipped_and_counted():
    first, second = read(b'\n \t\r\n{"title": "T", "id": "1"}\r\n\n\n{}')
    assert first.title == "T"
    assert second.line == 6


def test_a_byte_order_mark_at_the_start_is_fine():
    (article,) = read(b'\xef\xbb\xbf{"title": "T", "id": "1"}\n')
    assert article.title == "T"


def test_a_line_too_long_is_refused_without_being_held():
    """Gzip lets us send 80 MB without having them."""
    good = b'{"title": "T", "id": "1"}\n'
    packed = gzip.compress(good + b"x" * (MAX_LINE_BYTES + 16_000_000) + b"\n" + good, 1)
    tracemalloc.start()
    before, refused, after = read(packed)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert before == after
    assert (refused.line, refused.reason) == (2, "the line is longer than 64,000,000 bytes")
    assert peak < 3 * MAX_LINE_BYTES


def test_many_lines_take_constant_memory():
    row = json.dumps({"title": "T", "id": "1", "body": "b" * 10_000}).encode()
    packed = gzip.compress(b"\n".join([row] * 2_000), 1)
    stream = read_sources(
        ["-"], stdin=io.BytesIO(packed), validators={}, limits=FetchLimits(), now=NOW
    )
    tracemalloc.start()
    assert sum(isinstance(each, Article) for each in stream) == 2_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


def test_gzip_on_standard_input_and_in_several_parts():
    first, second = (
        gzip.compress(json.dumps({"title": title, "id": title}).encode() + b"\n")
        for title in ("one", "two")
    )
    assert [each.title for each in read(first + second)] == ["one", "two"]


def test_what_was_read_before_gzip_breaks_off_goes_through():
    rows = b"".join(
        json.dumps({"title": f"T {number} {number**5}", "id": number}).encode() + b"\n"
        for number in range(5_000)
    )
    packed = gzip.compress(rows)
    *articles, refused = read(packed[: len(packed) // 2])
    assert 1_000 < len(articles) < 4_000
    assert all(isinstance(each, Article) for each in articles)
    assert refused.line is None
    assert refused.reason.startswith(f"after line {len(articles)}, the gzip data break off")


def test_damaged_gzip_gives_one_refusal():
    (refused,) = read(b"\x1f\x8b\x08\x00garbage that is no deflate stream")
    assert isinstance(refused, Refusal)
    assert "gzip" in refused.reason


def test_standard_input_stays_open():
    stdin = io.BytesIO(b'{"title": "T", "id": "1"}\n')
    list(read_sources(["-"], stdin=stdin, validators={}, limits=FetchLimits(), now=NOW))
    assert not stdin.closed


def test_read_rows_gives_rows_as_they_are(tmp_path):
    path = tmp_path / "gold.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"story": "s1", "x": [1]}\n\nnope\n{"b": null}\n'))
    first, refused, last = read_rows(path)
    assert first == (1, {"story": "s1", "x": [1]})
    assert refused[0] == refused[1].line == 3
    assert refused[1].source == str(path)
    assert last == (4, {"b": None})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "it is a directory"),
        (lambda path: path.write_bytes(b""), "it is empty"),
        (lambda path: path.write_bytes(b"\n \n"), "it is empty"),
        (lambda path: path.write_bytes(gzip.compress(b"")), "it is empty"),
    ],
)
def test_read_rows_of_nothing_is_one_refusal(tmp_path, make, said):
    path = tmp_path / "rows.jsonl"
    make(path)
    ((_, refused),) = read_rows(path)
    assert refused.reason == said
    assert refused.source == str(path)


def test_a_replayed_corpus_may_have_any_dates():
    row = {"title": "T", "id": "1", "published_at": "1912-04-15"}
    everything = DateBounds(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))
    article = article_from_row(row, everything, source="old.jsonl", line=9)
    assert article.published_at.year == 1912
    assert article_from_row(row, BOUNDS, source="old.jsonl", line=9).line == 9
