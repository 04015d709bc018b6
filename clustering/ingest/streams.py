"""Byte streams of files and of standard input: gzip by its magic, lines and sizes bounded."""

from __future__ import annotations

import gzip
import io
import zlib
from typing import TYPE_CHECKING, BinaryIO, cast

from clustering.ingest.trouble import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
#: What reading a damaged file may raise; `EOFError` is a gzip file that breaks off.
READ_ERRORS = (OSError, EOFError, zlib.error)

_BUFFER_BYTES = 65_536


def open_file(path: Path) -> io.BufferedReader:
    """Open a file for reading.

    Raises:
        Refused: if it is missing, a directory, or not readable.
    """
    try:
        if path.is_dir():
            raise Refused("it is a directory", "name the files in it")
        return io.BufferedReader(path.open("rb", buffering=0), _BUFFER_BYTES)
    except FileNotFoundError:
        raise Refused("no such file", "check the path") from None
    except (OSError, ValueError) as error:
        raise Refused(f"it cannot be opened ({reason(error)})", "check its rights") from error


def buffered(stream: BinaryIO) -> io.BufferedReader:
    """Return a stream that can be peeked into; detach it afterwards to leave `stream` open."""
    return io.BufferedReader(cast("io.RawIOBase", stream), _BUFFER_BYTES)


def unzipped(stream: io.BufferedReader) -> io.BufferedReader:
    """Return `stream`, decompressed if it starts with gzip's magic."""
    if not peek(stream).startswith(GZIP_MAGIC):
        return stream
    return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=stream)), _BUFFER_BYTES)


def peek(stream: io.BufferedReader) -> bytes:
    """Return the first bytes of a stream, at most 64 KiB, without taking them.

    Raises:
        Refused: if they cannot be read.
    """
    try:
        return stream.peek(_BUFFER_BYTES)
    except READ_ERRORS as error:
        raise damaged(error) from error


def read_whole(stream: io.BufferedReader, max_bytes: int) -> bytes:
    """Read a stream to its end.

    Raises:
        Refused: if it is longer than `max_bytes`, or damaged.
    """
    try:
        data = stream.read(max_bytes + 1)
    except READ_ERRORS as error:
        raise damaged(error) from error
    if len(data) > max_bytes:
        raise too_large(max_bytes)
    return data


def gunzipped(data: bytes, max_bytes: int) -> bytes:
    """Return `data`, decompressed if it is gzip.

    Raises:
        Refused: as `read_whole`.
    """
    if not data.startswith(GZIP_MAGIC):
        return data
    return read_whole(unzipped(buffered(io.BytesIO(data))), max_bytes)


def lines(stream: io.BufferedReader, max_bytes: int) -> Iterator[tuple[int, bytes | None]]:
    """Give number (from 1) and bytes of each line; None for one longer than `max_bytes`.

    No more than `max_bytes` are held in memory.
    """
    number = 0
    while line := stream.readline(max_bytes + 1):
        number += 1
        if len(line) > max_bytes and not line.endswith(b"\n"):
            _skip_line(stream)
            yield number, None
        else:
            yield number, line


def _skip_line(stream: io.BufferedReader) -> None:
    """Read on to the end of the line."""
    while (part := stream.readline(_BUFFER_BYTES)) and not part.endswith(b"\n"):
        pass


def too_large(max_bytes: int) -> Refused:
    """Return the refusal of a document that is larger than is read."""
    return Refused(
        f"more than {max_bytes:,} bytes, decompressed",
        "raise the limit, or have it sent as JSON Lines, which have none",
    )


def damaged(error: BaseException) -> Refused:
    """Return the refusal of a file that cannot be read to its end."""
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return Refused(f"it cannot be read ({reason(error)})", "check the file and its disk")
    return Refused("the gzip data break off or are damaged", "fetch or write the file again")


def reason(error: BaseException) -> str:
    """Return what an error says, in a few words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
