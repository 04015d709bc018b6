"""Stories as JSON Lines: one story a line, times in ISO 8601, UTC."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def write_jsonl(rows: Iterable[Mapping[str, Any]], file: BinaryIO) -> int:
    """Write rows a line each; returns their number."""
    count = 0
    for count, row in enumerate(rows, start=1):  # noqa: B007 - counted as they come
        file.write(json.dumps(row, ensure_ascii=False, default=_plain).encode() + b"\n")
    return count


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} is no JSON")
