"""Writes rows into a file that appears whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from clustering.errors import ExportError
from clustering.export.jsonl import write_jsonl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

FORMATS = ("jsonl", "parquet")


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path, file_format: str) -> int:
    """Write rows of stories as they come; returns their number.

    Args:
        rows: a story each, as `Engine.export` makes them.
        path: file to write, over what is there; a device or pipe is written to as it is.
        file_format: one of `FORMATS`.

    Raises:
        ExportError: the file cannot be written, the format is unknown or its package missing.
    """
    if file_format == "jsonl":
        write = write_jsonl
    elif file_format == "parquet":
        from clustering.export.parquet import write_parquet as write  # noqa: PLC0415 - loads pyarrow
    else:
        raise ExportError(f"there is no format {file_format}; use one of {', '.join(FORMATS)}")
    try:
        with _whole_or_not(path) as file:
            return write(rows, file)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror}; name another file") from error


@contextmanager
def _whole_or_not(path: Path) -> Iterator[BinaryIO]:
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
