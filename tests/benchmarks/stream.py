"""A made-up stream of articles with known stories, as vectors alone: any length, 11,000 a day.

A topic gives a direction, a story one near its topic's, an article one near its story's. Most stories
are over within half a day; their sizes have a heavy tail. The cosines are about those of the aligned
space (docs/quality.md): .7 within a story, .2 between two of one topic, none elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pgvector import HalfVector

from clustering.embedding.partitions import make_partitions
from clustering.embedding.space import bind_space, use_space
from clustering.engine.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from clustering.store.session import Session

A_DAY = 11_000
DIMENSION = 384
NOW = datetime(2026, 3, 1, tzinfo=UTC)
# The default model's own, so that the engine clusters in it as in any database.
SPACE = Model(None, Path()).space()
LANGUAGES = ("en", "ja", "ar", "pt", "bn", "de")
_TOPICS = 300
_STORY_NEAR_TOPIC = 0.55
_ARTICLE_NEAR_STORY = 0.85
_MEAN_SIZE = 2.75
_STORY_HOURS = 6
_VECTOR_TYPES = ("int8", "timestamptz", "int4", "halfvec", "halfvec")
_ARTICLE_COLUMNS = "feed_id, guid, title, body, language, language_confidence, event_time, first_seen, entry_hash, encode_due, run_id"


class Batch(NamedTuple):
    """Articles in order of time.

    Attributes:
        times: n event times.
        vectors: float32 (n, 384), of unit length.
        stories: int64 (n,), the story that each tells.
        languages: n codes.
    """

    times: list[datetime]
    vectors: NDArray[np.float32]
    stories: NDArray[np.int64]
    languages: list[str]


@dataclass
class Stream:
    """Makes one day after another, counted from `NOW`; the same seed gives the same days in any order."""

    seed: int = 1

    def __post_init__(self) -> None:
        self._topics = _unit(np.random.default_rng(self.seed), _TOPICS)

    def day(self, number: int, articles: int | None = None) -> Batch:
        """The articles of the day that begins `number` days after `NOW`; negative before it."""
        count = A_DAY if articles is None else articles
        rng = np.random.default_rng((self.seed, number % 2**32))
        sizes = np.minimum(rng.zipf(2.0, size=max(1, int(count / _MEAN_SIZE))), 200)
        stories = np.repeat(np.arange(len(sizes)), sizes)
        rng.shuffle(stories)
        stories = np.resize(stories, count)
        begins = rng.uniform(0, 24 - _STORY_HOURS, len(sizes))
        hours = begins[stories] + np.minimum(rng.exponential(2, count), _STORY_HOURS)
        order = np.argsort(hours)
        stories, hours = stories[order], hours[order]
        centres = _near(
            rng, self._topics[rng.integers(_TOPICS, size=len(sizes))], _STORY_NEAR_TOPIC
        )
        vectors = _near(rng, centres[stories], _ARTICLE_NEAR_STORY)
        start = NOW + timedelta(days=number)
        return Batch(
            [start + timedelta(hours=float(hour)) for hour in hours],
            vectors,
            stories.astype(np.int64) + (number + 2**20) * 100_000,
            [LANGUAGES[i] for i in rng.integers(len(LANGUAGES), size=count)],
        )

    def before(self, number: int, articles: int) -> Iterator[Batch]:
        """The last `articles` articles before a day begins, day by day, the earliest first."""
        days = -(-articles // A_DAY)
        for back in range(days, 0, -1):
            yield self.day(number - back, min(A_DAY, articles - (back - 1) * A_DAY))


def _unit(rng: np.random.Generator, count: int) -> NDArray[np.float32]:
    vectors = rng.normal(size=(count, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _near(
    rng: np.random.Generator, centres: NDArray[np.float32], cosine: float
) -> NDArray[np.float32]:
    mixed = cosine * centres + float(np.sqrt(1 - cosine**2)) * _unit(rng, len(centres))
    return mixed / np.linalg.norm(mixed, axis=1, keepdims=True)


def use(session: Session) -> None:
    """Make the space in a migrated database."""
    use_space(session, SPACE)


@dataclass
class Writer:
    """Puts batches into a database with COPY, as the encoder would have.

    Attributes:
        session: of a database that has `SPACE`.
    """

    session: Session

    def __post_init__(self) -> None:
        bind_space(self.session, SPACE)
        connection = self.session.connection
        connection.execute("INSERT INTO feed (address) VALUES ('bench') ON CONFLICT DO NOTHING")
        self.run_id = connection.execute(
            "INSERT INTO run (command, started_at, settings) VALUES ('bench', now(), '{}') RETURNING id"
        ).fetchone()[0]

    def write(self, batch: Batch) -> list[int]:
        """Store articles with their vectors; returns their ids. They wait for no pass yet."""
        ids = self._articles(batch)
        with self.session.transaction():
            make_partitions(self.session, batch.times)
            halves = map(HalfVector, batch.vectors)
            rows = ((i, t, 1, h, h) for i, t, h in zip(ids, batch.times, halves, strict=True))
            self.session.copy("copy_vectors", _VECTOR_TYPES, rows)
        return ids

    def queue(self, batch: Batch) -> list[int]:
        """Store articles and let them wait for the passes."""
        ids = self.write(batch)
        self.session.execute("queue_for_clustering", article_ids=ids, event_times=batch.times)
        return ids

    def settle(self, batch: Batch) -> list[int]:
        """Store articles as an older history, each story known as a whole with its centroid; returns their ids."""
        ids = self.write(batch)
        order = np.argsort(batch.stories, kind="stable")
        edges = np.flatnonzero(np.diff(batch.stories[order])) + 1
        groups = [list(map(int, group)) for group in np.split(order, edges) if len(group) > 1]
        with self.session.transaction():
            self.session.execute("queue_for_clustering", article_ids=ids, event_times=batch.times)
            stories = self._stories(batch, ids, groups)
            placed = [ids[i] for group in groups for i in group]
            owners = [s for s, group in zip(stories, groups, strict=True) for _ in group]
            self._place(placed, owners)
            self._centroids(batch, stories, groups)
        return ids

    def _articles(self, batch: Batch) -> list[int]:
        connection = self.session.connection
        first = connection.execute("SELECT coalesce(max(id), 0) FROM article").fetchone()[0] + 1
        statement = f"COPY article ({_ARTICLE_COLUMNS}) FROM STDIN"
        with connection.cursor().copy(statement) as copy:
            for number, (at, language) in enumerate(
                zip(batch.times, batch.languages, strict=True), start=first
            ):
                name = f"{number:032x}"
                copy.write_row(
                    (
                        1,
                        name,
                        f"Title {number}",
                        "",
                        language,
                        1.0,
                        at,
                        at,
                        name,
                        False,
                        self.run_id,
                    )
                )
        return list(range(first, first + len(batch.times)))

    def _stories(self, batch: Batch, ids: list[int], groups: list[list[int]]) -> list[int]:
        rows = self.session.connection.execute(
            "INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id) "
            "SELECT f, l, s, '{en}', 1, h, %s FROM unnest(%s::timestamptz[], %s::timestamptz[], %s::int[], %s::bigint[]) "
            "AS n (f, l, s, h) RETURNING id",
            (
                self.run_id,
                [batch.times[g[0]] for g in groups],
                [batch.times[g[-1]] for g in groups],
                [len(g) for g in groups],
                [ids[g[0]] for g in groups],
            ),
        ).fetchall()
        return [row[0] for row in rows]

    def _place(self, placed: list[int], owners: list[int]) -> None:
        connection = self.session.connection
        connection.execute(
            "UPDATE story_article p SET story_id = s, placed_in = s, pass = 'discover', run_id = %s "
            "FROM unnest(%s::bigint[], %s::bigint[]) AS n (a, s) WHERE p.article_id = a",
            (self.run_id, placed, owners),
        )
        connection.execute(
            "UPDATE story_article SET pass = 'none', run_id = %s WHERE pass = 'pending'",
            (self.run_id,),
        )

    def _centroids(self, batch: Batch, stories: list[int], groups: list[list[int]]) -> None:
        columns = (
            "story_id, first_time, latest_time, size, cohesion, languages, mean_norm, centroid"
        )
        statement = f"COPY {SPACE.story_table} ({columns}) FROM STDIN"
        with self.session.connection.cursor().copy(statement) as copy:
            for story, group in zip(stories, groups, strict=True):
                mean = batch.vectors[group].mean(axis=0)
                norm = float(np.linalg.norm(mean))
                first, latest = batch.times[group[0]], batch.times[group[-1]]
                shape = (story, first, latest, len(group), 0.7, '{"en": 1}', norm)
                copy.write_row((*shape, HalfVector(mean / norm).to_text()))


def slices(batch: Batch, parts: int) -> list[Batch]:
    """Cut a batch into parts of about equal length, in order of time."""
    edges = np.linspace(0, len(batch.times), parts + 1).astype(int)
    return [
        Batch(batch.times[a:b], batch.vectors[a:b], batch.stories[a:b], batch.languages[a:b])
        for a, b in pairwise(edges)
    ]
