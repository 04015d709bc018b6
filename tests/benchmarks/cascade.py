"""How long the cascade takes on one day's articles against a history that it makes by itself.

    make bench-cascade                     # 1,000,000 stored articles
    make bench-cascade BENCH_ARGS="--stored 9000000"

The history is written with COPY. Its articles of the last four days have real bodies and keys, since
only they can be twins; older ones have random hashes, sketches of real titles, and no body, which no
stage reads. A fifth of the day are copies: fresh guids, tracking parameters, the same text elsewhere, a
word changed, a paragraph more. One in twenty has a title like another's.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from psycopg import sql

from clustering.dedup.cascade import fold
from clustering.dedup.keys import keys_of
from clustering.ingest.upsert import Entry, Key, add, content_of
from clustering.records import Article, Keys
from clustering.store.database import make_database
from clustering.store.embedded import EmbeddedServer
from clustering.store.migrations import migrate
from clustering.store.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

A_DAY = 11_000
FEEDS = 40
BATCH = 500
RECENT = timedelta(days=4)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
KINDS = {"entry": 0.04, "url": 0.04, "content": 0.06, "simhash": 0.06, "title": 0.05, "new": 0.75}
COLUMNS = {
    "feed_id": "int8",
    "guid": "text",
    "url": "text",
    "title": "text",
    "body": "text",
    "language": "text",
    "language_confidence": "float4",
    "event_time": "timestamptz",
    "first_seen": "timestamptz",
    "entry_hash": "uuid",
    "url_hash": "uuid",
    "content_hash": "uuid",
    "simhash": "int8",
    "band_1": "int8",
    "band_2": "int8",
    "band_3": "int8",
    "band_4": "int8",
    "title_sketch": "int8[]",
    "encode_due": "bool",
    "run_id": "int8",
}


class Stored(NamedTuple):
    """An article of the history with its time."""

    article: Article
    event_time: datetime


@dataclass
class Writer:
    """Makes up articles: words and phrases as common as in a language, titles of stock phrases."""

    random: random.Random

    def __post_init__(self) -> None:
        letters = "etaoinshrdlucmfwypvbgkqjxz"
        self.words = [
            "".join(self.random.choices(letters, range(26, 0, -1), k=self.random.randint(2, 10)))
            for _ in range(20_000)
        ]
        self.weights = list(accumulate(1 / rank for rank in range(1, len(self.words) + 1)))
        self.phrases = [self.text(3) for _ in range(5_000)]
        self.number = 0

    def text(self, words: int) -> str:
        return " ".join(self.random.choices(self.words, cum_weights=self.weights, k=words))

    def title(self) -> str:
        return f"{self.random.choice(self.phrases)} {self.text(self.random.randint(2, 7))}".title()

    def article(self) -> Article:
        self.number += 1
        sentences = (self.text(self.random.randint(8, 25)).capitalize() for _ in range(20))
        return Article(
            self.title(),
            id=f"guid-{self.number}",
            url=f"https://news.example/{self.number}",
            source=str(self.number % FEEDS),
            body=". ".join(sentences) + ".",
        )

    def copy(self, kind: str, original: Article) -> Article:
        """An article that the stage `kind` should fold into `original`."""
        fresh = self.article()
        if kind == "entry":
            return replace(original, id=fresh.id)
        if kind == "url":
            return replace(fresh, url=f"{original.url}?utm_source=feed{self.number}")
        if kind == "content":
            return replace(fresh, body=f"{original.body} (Reuters)")
        if kind == "title":
            return replace(fresh, title=f"{original.title} {self.text(1)}")
        words = original.body.split()
        words[self.random.randrange(len(words))] = "corrected"
        more = fresh.body[: len(original.body) // 12] if self.random.random() < 0.5 else ""
        return replace(fresh, body=f"{' '.join(words)}\n{more}")

    def day(self, recent: list[Stored], candidates: int) -> list[Article]:
        """One day's articles, of each kind its share, in any order."""
        kinds = self.random.choices(list(KINDS), list(KINDS.values()), k=candidates)
        late = [stored.article for stored in recent if stored.event_time > NOW - timedelta(days=1)]
        return [
            self.article() if kind == "new" else self.copy(kind, self.random.choice(late))
            for kind in kinds
        ]


def history(writer: Writer, stored: int) -> Iterator[tuple[Stored, Keys]]:
    """Articles from the oldest to now, 11,000 a day, with their keys."""
    sketches = [keys_of(Article(writer.title())).title_sketch for _ in range(20_000)]
    for number in range(stored):
        event_time = NOW - timedelta(days=1) / A_DAY * (stored - number)
        if event_time > NOW - RECENT:
            article = writer.article()
            yield Stored(article, event_time), keys_of(article)
        else:
            article = Article("Old", id=f"old-{number}", source=str(number % FEEDS))
            yield Stored(article, event_time), _random_keys(writer.random, sketches)


def load(session: Session, rows: Iterator[tuple[Stored, Keys]], run_id: int) -> list[Stored]:
    """COPY a history into an empty database; returns its recent articles."""
    recent = []
    statement = f"COPY article ({', '.join(COLUMNS)}) FROM STDIN (FORMAT binary)"
    with _indexed_afterwards(session), session.connection.cursor().copy(statement) as copy:
        copy.set_types(list(COLUMNS.values()))
        for stored, keys in rows:
            article, at = stored
            if article.body:
                recent.append(stored)
            # Feeds are numbered from 1 in the order of their names here.
            head = (int(article.source) + 1, article.id, article.url, article.title, article.body)
            hashes = (keys.entry_hash, keys.url_hash, keys.content_hash, keys.simhash, *keys.bands)
            sketch = list(keys.title_sketch)
            copy.write_row((*head, "en", 1.0, at, at, *hashes, sketch, False, run_id))
    session.connection.execute("VACUUM ANALYZE")
    return recent


@contextmanager
def _indexed_afterwards(session: Session) -> Iterator[None]:
    """Take the indexes of the cascade away for the block and build them anew: far faster than row by row."""
    indexes = session.connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes "
        "WHERE tablename = 'article' AND indexdef NOT LIKE 'CREATE UNIQUE%'"
    ).fetchall()
    for index in indexes:
        session.connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(index.indexname)))
    yield
    for index in indexes:
        session.connection.execute(index.indexdef)


def measure(
    session: Session, stored: int, candidates: int = A_DAY, seed: int = 1
) -> dict[str, object]:
    """Load a history, then take one day in; returns seconds by step, links by stage, number of flags."""
    writer = Writer(random.Random(seed))
    session.connection.execute(
        "INSERT INTO feed (address) SELECT generate_series(0, %s)::text", (FEEDS - 1,)
    )
    run_id = session.connection.execute(
        "INSERT INTO run (command, started_at, settings) VALUES ('bench', now(), '{}') RETURNING id"
    ).fetchone()[0]
    start = time.perf_counter()
    recent = load(session, history(writer, stored), run_id)
    seconds = Counter({"load": time.perf_counter() - start})
    links: Counter[str] = Counter()
    day = writer.day(recent, candidates)
    for first in range(0, len(day), BATCH):
        links.update(_take_in(session, day[first : first + BATCH], first, run_id, seconds))
    flags = session.connection.execute("SELECT count(*) FROM review_flag").fetchone()[0]
    rounded = {name: round(value, 2) for name, value in seconds.items()}
    total = round(sum(seconds[step] for step in ("keys", "add", "fold")), 2)
    return {
        "stored": stored,
        "candidates": candidates,
        "seconds": rounded | {"keys, add and fold": total},
        "links": dict(links),
        "flags": flags,
    }


def _take_in(
    session: Session, articles: list[Article], first: int, run_id: int, seconds: Counter[str]
) -> Counter[str]:
    marks = [time.perf_counter()]
    entries = []
    for number, article in enumerate(articles, start=first):
        at = NOW + timedelta(seconds=number)
        key = Key(int(article.source) + 1, article.id)
        entries.append(Entry(key, content_of(article), keys_of(article), "en", 1.0, at, at))
    marks.append(time.perf_counter())
    with session.transaction():
        ids = add(session, entries, run_id)
        marks.append(time.perf_counter())
        links = fold(session, ids, run_id)
        marks.append(time.perf_counter())
    for name, begin, end in zip(("keys", "add", "fold"), marks, marks[1:], strict=False):
        seconds[name] += end - begin
    return Counter(link.stage for link in links)


def _random_keys(rng: random.Random, sketches: list[tuple[int, ...]]) -> Keys:
    from uuid import UUID

    hashes = (UUID(int=rng.getrandbits(128)) for _ in range(3))
    bands = tuple(rng.getrandbits(63) for _ in range(4))
    return Keys(*hashes, rng.getrandbits(63), bands, rng.choice(sketches))


def main() -> None:
    """Measure in an embedded server of its own and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stored", type=int, default=1_000_000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="stories-bench-", ignore_cleanup_errors=True) as home,
        closing(EmbeddedServer(Path(home) / "server")) as server,
    ):
        server.start()
        make_database(server.dsn("postgres"), "bench")
        with closing(Session(server.dsn("bench"))) as session:
            migrate(session)
            session.register_vectors()
            json.dump(measure(session, options.stored), sys.stdout, indent=1)
            print()


if __name__ == "__main__":
    main()
