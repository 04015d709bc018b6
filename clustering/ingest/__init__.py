"""Articles from files, feeds and standard input, and the language that each is in.

The readers yield `records.Article`, `records.Feed` and `records.Refusal` and touch no database;
`upsert` stores what they yield. What a feed does wrong is mended, as its reader cannot have it
corrected; what JSON Lines do wrong is refused by name and line, as their writer can.
"""

from clustering.ingest.dates import DateBounds
from clustering.ingest.fetch import FetchLimits
from clustering.ingest.jsonl import article_from_row, read_rows
from clustering.ingest.language import settle_language
from clustering.ingest.sources import read_sources

__all__ = [
    "DateBounds",
    "FetchLimits",
    "article_from_row",
    "read_rows",
    "read_sources",
    "settle_language",
]
