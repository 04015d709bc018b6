"""Whatever the operator names, read in turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from clustering.ingest.dates import DateBounds
from clustering.ingest.jsonl import read_json_lines
from clustering.ingest.streams import buffered, open_file, unzipped
from clustering.ingest.trouble import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from clustering.ingest.limits import FetchLimits
    from clustering.records import Article, Feed, Refusal


def read_sources(
    sources: Sequence[str],
    *,
    stdin: BinaryIO,
    validators: Mapping[str, Feed],  # noqa: ARG001 - the fetcher is yet to come
    limits: FetchLimits,  # noqa: ARG001 - the same
    now: datetime,
) -> Iterator[Article | Feed | Refusal]:
    """Read every source, in order."""
    bounds = DateBounds.around(now)
    for source in sources:
        try:
            if source == "-":
                stream = buffered(stdin)
                yield from read_json_lines(unzipped(stream), source, bounds)
                stream.detach()
            else:
                with open_file(Path(source)) as file:
                    yield from read_json_lines(unzipped(file), source, bounds)
        except Refused as refused:
            yield refused.at(source)
