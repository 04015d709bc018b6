"""The sample day: a demonstration from nothing to stories."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo

from clustering.ingest.dates import DateBounds
from clustering.ingest.jsonl import article_from_row, read_rows
from clustering.records import Article
from clustering.store.database import drop_database, dsn_of, make_database

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


DEMO_DATABASE = "stories_demo"
# The one article without a date is seen when the last of its day are.
_END = datetime(2026, 3, 10, 22, tzinfo=UTC)
_BOUNDS = DateBounds.around(_END)


@contextmanager
def fresh_database(name: str | None, home: Path) -> Iterator[str]:
    """Yield the DSN of an empty demonstration database, beside another on its server; it stays."""
    with ExitStack() as opened:
        beside = dsn_of(name, home, opened)
        drop_database(beside, DEMO_DATABASE)
        make_database(beside, DEMO_DATABASE)
        yield make_conninfo(beside, dbname=DEMO_DATABASE)


def sample_day() -> list[Article]:
    """Return the articles of the sample day."""
    with as_file(files("clustering.sample") / "sample_day.jsonl") as path:
        rows = [row for _, row in read_rows(path) if isinstance(row, dict)]
    found = (article_from_row(row, _BOUNDS, source="sample_day.jsonl", line=1) for row in rows)
    return [_seen(article) for article in found if isinstance(article, Article)]


def _seen(article: Article) -> Article:
    return replace(article, published_at=article.published_at or _END)
