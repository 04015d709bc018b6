"""What a source may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Bounds of fetching, so that one address cannot hold up or exhaust a run.

    Attributes:
        max_bytes: size of a document, decompressed; feed files are held to it as well.
        total_seconds: from the first request to the last byte, redirects included.
        connect_seconds: to open one connection.
        redirects: followed at most.
        parallel: addresses fetched at the same time.
    """

    max_bytes: int = 10_000_000
    total_seconds: float = 30.0
    connect_seconds: float = 10.0
    redirects: int = 5
    parallel: int = 8
