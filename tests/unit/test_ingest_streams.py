"""Byte streams and what kind of document they hold."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from clustering.ingest.kinds import kind_of
from clustering.ingest.streams import (
    buffered,
    damaged,
    gunzipped,
    lines,
    open_file,
    peek,
    read_whole,
    reason,
    unzipped,
)
from clustering.ingest.trouble import Refused


def stream(data):
    return buffered(io.BytesIO(data))


def test_lines_are_numbered_and_bounded():
    assert list(lines(stream(b"one\n\nthree"), 10)) == [(1, b"one\n"), (2, b"\n"), (3, b"three")]
    data = b"a" * 10 + b"\n" + b"b" * 11 + b"\n" + b"c" * 200_000 + b"\nlast"
    assert list(lines(stream(data), 10)) == [
        (1, b"a" * 10 + b"\n"),
        (2, None),
        (3, None),
        (4, b"last"),
    ]


def test_gzip_is_told_by_its_first_bytes():
    assert unzipped(stream(gzip.compress(b"text", mtime=0))).read() == b"text"
    assert unzipped(stream(b"text")).read() == b"text"
    assert gunzipped(gzip.compress(b"text", mtime=0), 4) == b"text"
    assert gunzipped(b"text", 4) == b"text"


def test_documents_are_bounded_after_decompression():
    assert read_whole(stream(b"12345"), 5) == b"12345"
    with pytest.raises(Refused, match="more than 4 bytes, decompressed"):
        read_whole(stream(b"12345"), 4)
    with pytest.raises(Refused, match="more than 1,000 bytes"):
        gunzipped(gzip.compress(b"0" * 50_000_000, mtime=0), 1_000)


def test_peeking_takes_nothing():
    opened = stream(b"abc")
    assert peek(opened) == b"abc"
    assert opened.read() == b"abc"


@pytest.mark.parametrize(
    "data", [gzip.compress(b"x" * 1_000, mtime=0)[:-9], b"\x1f\x8bjunk", b"\x1f\x8b"]
)
def test_damaged_gzip_is_refused(data):
    with pytest.raises(Refused, match="gzip data break off or are damaged"):
        gunzipped(data, 10_000)


def test_errors_are_told_in_words():
    assert "Input/output error" in damaged(OSError(5, "Input/output error")).reason
    assert "gzip" in damaged(EOFError()).reason
    assert reason(ValueError()) == "ValueError"
    assert reason(ValueError("what it says")) == "what it says"


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(Refused, match="it is a directory"):
        open_file(tmp_path)
    with pytest.raises(Refused, match="no such file"):
        open_file(tmp_path / "none")
    with pytest.raises(Refused, match="cannot be opened"):
        open_file(tmp_path / "a\0b")
    with pytest.raises(Refused, match="cannot be opened"):
        open_file(tmp_path / ("x" * 300))


ROW = json.dumps({"title": "T", "id": "1"}).encode()


@pytest.mark.parametrize(
    ("head", "name", "kind"),
    [
        (b"", "a.jsonl", "empty"),
        (b" \n\t", "a.xml", "empty"),
        (b"\xef\xbb\xbf", "a", "empty"),
        (b"<?xml version='1.0'?><rss>", "a.jsonl", "xml"),
        (b"\n <rss>", "feed", "xml"),
        (b"\xef\xbb\xbf<feed>", "feed", "xml"),
        ("<rss>".encode("utf-16"), "feed", "xml"),
        (b"PHP Warning: x\n<?xml version='1.0'?>", "feed", "xml"),
        (b"<!DOCTYPE html><html>", "a.xml", "xml"),
        (ROW, "a.jsonl", "lines"),
        (ROW, "a.json", "lines"),
        (ROW + b"\n" + ROW, "articles", "lines"),
        (b'{"title": "' + b"x" * 70_000, "articles", "lines"),
        (b'{"version": "https://jsonfeed.org/version/1", "items": []}', "a.jsonl", "json"),
        (b'{\n  "version": "https://jsonfeed.org/version/1"', "feed", "json"),
        (b'{\n "a": 1\n}', "a.json", "json"),
        (b'{\n "a": 1\n}', "a.jsonl", "lines"),
        (b"[1, 2]", "a.json", "json"),
        (b"[1, 2]", "a.jsonl", "lines"),
        (b"title,url\n", "a.jsonl", "lines"),
        (b"title,url\n", "a.csv", "unknown"),
        (b"\x89PNG\r\n", "a.png", "unknown"),
    ],
)
def test_a_document_is_told_by_how_it_begins(head, name, kind):
    assert kind_of(head, name) == kind
