"""Stories as Parquet: a row a story, articles and links nested in it, times in UTC to the microsecond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

from clustering.errors import ExportError

try:
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter
except ImportError as error:
    raise ExportError(
        "Parquet needs pyarrow; pip install 'story-clustering[export]', or use the format jsonl"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# A row group ends with either: large enough to compress, small enough to be held several times over,
# as Python objects, as Arrow arrays and in the writer.
_GROUP_ARTICLES = 2000
_GROUP_CHARS = 2_000_000
_TIME = pa.timestamp("us", tz="UTC")
_DUPLICATE = pa.struct(
    [
        ("id", pa.int64()),
        ("source", pa.string()),
        ("guid", pa.string()),
        ("url", pa.string()),
        ("title", pa.string()),
        ("event_time", _TIME),
        ("stage", pa.string()),
        ("score", pa.float64()),
        ("run_id", pa.int64()),
    ]
)
_ARTICLE = pa.struct(
    [
        ("id", pa.int64()),
        ("source", pa.string()),
        ("guid", pa.string()),
        ("url", pa.string()),
        ("title", pa.string()),
        ("body", pa.string()),
        ("author", pa.string()),
        ("language", pa.string()),
        ("published_at", _TIME),
        ("event_time", _TIME),
        ("first_seen", _TIME),
        ("pass_name", pa.string()),
        ("score", pa.float64()),
        ("threshold", pa.float64()),
        ("nearest_id", pa.int64()),
        ("run_id", pa.int64()),
        ("editor", pa.string()),
        ("placed_at", _TIME),
        ("duplicates", pa.list_(_DUPLICATE)),
    ]
)
_ABSORBED = pa.struct(
    [
        ("story_id", pa.int64()),
        ("score", pa.float64()),
        ("threshold", pa.float64()),
        ("run_id", pa.int64()),
        ("editor", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("headline", pa.string()),
        ("headline_id", pa.int64()),
        ("languages", pa.list_(pa.string())),
        ("sources", pa.int64()),
        ("size", pa.int64()),
        ("first_time", _TIME),
        ("latest_time", _TIME),
        ("event_id", pa.int64()),
        ("articles", pa.list_(_ARTICLE)),
        ("absorbed", pa.list_(_ABSORBED)),
        ("scores", pa.map_(pa.string(), pa.float64())),
    ]
)


def write_parquet(rows: Iterable[Mapping[str, Any]], file: BinaryIO) -> int:
    """Write rows in groups bounded by articles and text; returns their number."""
    count = 0
    with ParquetWriter(file, SCHEMA, compression="zstd") as writer:
        for group in _groups(rows):
            writer.write_table(pa.Table.from_pylist(group, schema=SCHEMA))
            count += len(group)
    return count


def _groups(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    group: list[Mapping[str, Any]] = []
    articles = chars = 0
    for row in rows:
        group.append({**row, "scores": list(row["scores"].items())})
        articles += len(row["articles"])
        chars += sum(len(article["body"]) for article in row["articles"])
        if articles >= _GROUP_ARTICLES or chars >= _GROUP_CHARS:
            yield group
            group, articles, chars = [], 0, 0
    if group:
        yield group
