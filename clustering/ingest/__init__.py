"""Sources to articles: JSON Lines, feeds, lists of feeds, files and addresses alike.

Readers yield `records.Article`, `records.Feed` and `records.Refusal` and touch no database;
`upsert` stores what they yield. What can be mended is mended where the reader of a source cannot
mend it (feeds), and refused by name and line where its writer can (JSON Lines).
"""

from __future__ import annotations

from clustering.ingest.dates import DateBounds
from clustering.ingest.jsonl import article_from_row, read_rows
from clustering.ingest.language import settle_language
from clustering.ingest.limits import FetchLimits
from clustering.ingest.sources import read_sources

__all__ = [
    "DateBounds",
    "FetchLimits",
    "article_from_row",
    "read_rows",
    "read_sources",
    "settle_language",
]
