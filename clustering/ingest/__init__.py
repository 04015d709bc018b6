"""Articles from files, feeds and standard input, and the language that each is in."""

from clustering.ingest.fetch import FetchLimits
from clustering.ingest.language import settle_language
from clustering.ingest.sources import read_sources

__all__ = ["FetchLimits", "read_sources", "settle_language"]
