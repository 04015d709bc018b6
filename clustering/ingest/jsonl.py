"""JSON Lines: one article a line, any number of lines, in constant memory.

Strict, because whoever writes the file can be told. Every line that is refused is named with its
number; the others go through.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clustering.ingest.cleaning import clean_line, unstorable
from clustering.ingest.dates import DateBounds, parse_iso
from clustering.ingest.markup import text_of
from clustering.ingest.streams import READ_ERRORS, damaged, lines, open_file, unzipped
from clustering.ingest.tags import normalise_tag
from clustering.ingest.trouble import Refused
from clustering.records import Article, Refusal

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

# Never parsed, never whole in memory: no article is that long.
MAX_LINE_BYTES = 64_000_000
#: Of id, url and source: PostgreSQL's indexes hold no more than 2,704 bytes.
MAX_KEY_BYTES = 2_000
MAX_TITLE_CHARS = 10_000
MAX_BODY_CHARS = 1_000_000
_BOM = b"\xef\xbb\xbf"


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | Refusal]]:
    """Give the rows of a JSON Lines file, gzip or not, as they are.

    Args:
        path: the file.

    Yields:
        Line number (from 1) and the parsed object, or the refusal of that line. A file that
        cannot be read, is empty or breaks off gives one refusal that names no line, last.
    """
    number = 0
    try:
        with open_file(path) as file:
            for number, row in parse_lines(unzipped(file), str(path)):
                yield number, row
    except Refused as refused:
        yield number, refused.at(str(path))


def parse_lines(
    stream: io.BufferedReader, source: str
) -> Iterator[tuple[int, dict[str, Any] | Refusal]]:
    """Give line number and parsed object, or refusal, of each line that is not blank.

    Args:
        stream: the lines, UTF-8, decompressed.
        source: file or address, for the refusals.
    """
    number, empty = 0, True
    try:
        for number, line in lines(stream, MAX_LINE_BYTES):
            if line is None or line.strip(b" \t\r\n\xef\xbb\xbf"):
                empty = False
                yield number, _parsed_or_refused(line, number, source)
    except READ_ERRORS as error:
        trouble = damaged(error)
        after = Refused(f"after line {number}, {trouble.reason}", trouble.remedy)
        yield number, after.at(source)
    else:
        if empty:
            yield number, nothing_in_it().at(source)


def read_json_lines(
    stream: io.BufferedReader, source: str, bounds: DateBounds
) -> Iterator[Article | Refusal]:
    """Give the articles of a stream of JSON Lines, and a refusal for every line that is none.

    Args:
        stream: the lines, UTF-8, decompressed.
        source: file or address, for the refusals.
        bounds: dates outside are refused.
    """
    for number, row in parse_lines(stream, source):
        if isinstance(row, Refusal):
            yield row
        else:
            yield article_from_row(row, bounds, source=source, line=number)


def article_from_row(
    row: dict[str, Any], bounds: DateBounds, *, source: str, line: int
) -> Article | Refusal:
    """Make an article of a parsed row; keys that are not known are ignored.

    Args:
        row: the object.
        bounds: dates outside are refused.
        source: file that the row is from, for the refusal.
        line: its line there, from 1.
    """
    try:
        return _article(row, bounds)
    except Refused as refused:
        return refused.at(source, line)


def nothing_in_it() -> Refused:
    """Return the refusal of an empty file."""
    return Refused("it is empty", "nothing was read from it; check who writes it")


def _parsed_or_refused(line: bytes | None, number: int, source: str) -> dict[str, Any] | Refusal:
    if line is None:
        longer = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
        return Refusal(source, number, longer, "leave out what is no article")
    try:
        return _parse(line.removeprefix(_BOM) if number == 1 else line)
    except Refused as refused:
        return refused.at(source, number)


def _parse(line: bytes) -> dict[str, Any]:
    """Parse one line.

    Raises:
        Refused: if it is no JSON object in UTF-8.
    """
    try:
        row = json.loads(line.decode(), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise Refused(
            f"not UTF-8 (byte {error.start + 1} of the line)", "write the file in UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        if b"\x00" in line:
            raise Refused("a NUL character", "write no NUL characters") from None
        raise Refused(
            f"not JSON ({error.msg}, column {error.colno})", "write one JSON object a line"
        ) from None
    except (ValueError, RecursionError) as error:
        raise Refused(f"not JSON ({error})", "write one JSON object a line") from None
    if not isinstance(row, dict):
        raise Refused(
            f"not an object but {_kind(row)}", 'write {"title": ..., "url": ...} on each line'
        )
    return row


def _article(row: dict[str, Any], bounds: DateBounds) -> Article:
    """Make an article of a parsed row.

    Raises:
        Refused: if a field is missing, of a wrong type, or out of bounds.
    """
    title = text_of(_text(row, "title") or "").replace("\n", " ")
    identifier, url = _identifier(row), _text(row, "url")
    if not title:
        raise Refused("no title", 'give every row a "title" that is not blank')
    if identifier is None and url is None:
        raise Refused("no id and no url", 'give every row an "id" or a "url"')
    source = _text(row, "source") or _host(url) or "unknown"
    _check_keys({"id": identifier, "url": url, "source": source})
    body = _text(row, "body") or _text(row, "summary") or ""
    _check_length("title", title, MAX_TITLE_CHARS)
    _check_length("body", body, MAX_BODY_CHARS)
    return Article(
        title=title,
        id=identifier,
        url=url,
        source=source,
        body=text_of(body),
        author=clean_line(_text(row, "author") or "") or None,
        published_at=_date(_text(row, "published_at"), bounds),
        language=normalise_tag(_text(row, "language")),
    )


def _text(row: dict[str, Any], key: str) -> str | None:
    """Return a field's text without white space around it; None if absent, null or blank."""
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Refused(f'"{key}" is {_kind(value)}, not text', f'write "{key}" as a JSON string')
    trouble = unstorable(value)
    if trouble is not None:
        raise Refused(f'"{key}" has {trouble}', f'remove it from "{key}"')
    return value.strip() or None


def _identifier(row: dict[str, Any]) -> str | None:
    """Return the id; integers are common and become text."""
    value = row.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return _text(row, "id")


def _no_number(name: str) -> None:
    """Refuse NaN and Infinity, which Python writes and JSON has not (RFC 8259, section 6)."""
    raise ValueError(f"{name} is no JSON")


def _kind(value: object) -> str:
    """Name the type of a JSON value."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names = {dict: "an object", list: "an array", str: "text", int: "a number", float: "a number"}
    return names[type(value)]


def _check_length(key: str, text: str, most_chars: int) -> None:
    if len(text) > most_chars:
        raise Refused(
            f'"{key}" has {len(text):,} characters, more than {most_chars:,}',
            f'shorten "{key}"; the lede is enough',
        )


def _check_keys(keys: dict[str, str | None]) -> None:
    for key, text in keys.items():
        if len((text or "").encode()) > MAX_KEY_BYTES:
            raise Refused(f'"{key}" is longer than {MAX_KEY_BYTES:,} bytes', f'shorten "{key}"')


def _date(text: str | None, bounds: DateBounds) -> datetime | None:
    if text is None:
        return None
    try:
        moment = parse_iso(text)
    except ValueError:
        raise Refused(
            f'"published_at" is no date ({text[:40]!r})',
            'write it as ISO 8601, like "2026-03-02T11:41:10Z", or leave it out',
        ) from None
    if moment not in bounds:
        raise Refused(
            f'"published_at" is {moment:%Y-%m-%d}, not between {bounds.earliest:%Y-%m-%d} and '
            f"{bounds.latest:%Y-%m-%d}",
            "mend the date or leave it out",
        )
    return moment


def _host(url: str | None) -> str | None:
    """Return the host of an address, without a leading www."""
    try:
        host = urlsplit(url or "").hostname
    except ValueError:
        return None
    return host.removeprefix("www.") if host else None
