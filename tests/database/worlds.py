"""A small hand-made space of 8 dimensions, articles put straight into it, and the passes run over them."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from math import cos, radians, sin
from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector

from clustering.embedding.partitions import make_partitions
from clustering.embedding.space import Space, use_space
from clustering.stories.calibration import Calibration
from clustering.stories.passes import Passes, next_slice

if TYPE_CHECKING:
    from clustering.store.session import Session

START = datetime(2026, 3, 1, tzinfo=UTC)
FAR_FUTURE = datetime(2100, 1, 1, tzinfo=UTC)
STEP = timedelta(hours=1)
DIMENSION = 8
SPACE = Space("tiny", "tiny", "1", DIMENSION, "", "by hand", "none")
CALIBRATION = Calibration(
    match=0.9,
    attach=0.9,
    link=0.9,
    merge=0.95,
    story_gap_hours=18,
    story_age_hours=36,
    centroid_members=10,
    neighbours=10,
    time_penalty=0,
    language_penalty=0,
    chain_slack=0.05,
    match_cohesion_penalty=0,
    merge_cohesion_penalty=0,
    merge_size_penalty=0,
    cohesion_prior=0.5,
    event_link=0.6,
    event_gap_hours=168,
    event_time_penalty=0,
)
_VECTOR_TYPES = ("int8", "timestamptz", "int4", "halfvec", "halfvec")


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def turned(degrees: float, plane: int = 0) -> np.ndarray:
    """A unit vector in one of four planes: two of one plane have the cosine of the angle between."""
    vector = np.zeros(DIMENSION, np.float32)
    vector[2 * plane : 2 * plane + 2] = cos(radians(degrees)), sin(radians(degrees))
    return vector


@dataclass
class World:
    """A database with a tiny space; `calibration` may be exchanged between runs."""

    session: Session
    calibration: Calibration = CALIBRATION
    numbers: count = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        use_space(self.session, SPACE)

    def sql(self, text: str, *values: object) -> list:
        cursor = self.session.connection.execute(text, values or None)
        return cursor.fetchall() if cursor.description else []

    def one(self, text: str, *values: object):
        return self.sql(text, *values)[0][0]

    def run_id(self) -> int:
        return self.one(
            "INSERT INTO run (command, started_at, settings) VALUES ('test', now(), '{}') RETURNING id"
        )

    def feed(self, address: str) -> int:
        self.sql("INSERT INTO feed (address) VALUES (%s) ON CONFLICT DO NOTHING", address)
        return self.one("SELECT id FROM feed WHERE address = %s", address)

    def article(self, hours: float = 0, *, source: str = "feed", **columns: object) -> int:
        """Store an article of no key and no vector; `columns` go over what is made up for it."""
        number = next(self.numbers)
        values = {
            "guid": str(number),
            "title": f"Title {number}",
            "body": "",
            "language": "en",
            "language_confidence": 1.0,
            "event_time": at(hours),
            "first_seen": at(hours),
            "entry_hash": UUID(int=number),
            "feed_id": self.feed(source),
        } | columns
        values.setdefault("run_id", self.run_id())
        names = ", ".join(values)
        marks = ", ".join(["%s"] * len(values))
        return self.one(
            f"INSERT INTO article ({names}) VALUES ({marks}) RETURNING id", *values.values()
        )

    def add(self, vector: np.ndarray, hours: float = 0, **columns: object) -> int:
        """Store an article with a vector and queue it for the passes."""
        article = self.article(hours, **columns)
        self.embed([(article, at(hours), vector)])
        return article

    def embed(self, rows: list[tuple[int, datetime, np.ndarray]]) -> None:
        """Write vectors as the encoder does and queue their articles."""
        ids, times, _ = map(list, zip(*rows, strict=True))
        with self.session.transaction():
            make_partitions(self.session, times)
            written = ((a, t, 1, HalfVector(v), HalfVector(v)) for a, t, v in rows)
            self.session.copy("copy_vectors", _VECTOR_TYPES, written)
            self.session.execute("queue_for_clustering", article_ids=ids, event_times=times)
            self.session.execute("mark_encoded", article_ids=ids, revisions=[1] * len(ids))

    def cluster(self, as_of: datetime = FAR_FUTURE, **changes: object) -> Counter[str]:
        """Run the passes over all that waits; `changes` to the calibration last for this call."""
        calibration = replace(self.calibration, **changes)
        total = Counter[str]()
        run_id = None
        while batch := next_slice(self.session, as_of, STEP):
            run_id = run_id or self.run_id()
            passes = Passes(self.session, calibration, run_id, lambda _: nullcontext())
            total.update(passes.run(batch))
        return total

    def stories(self) -> list[list[int]]:
        """The articles of each live story, sorted."""
        found = defaultdict(list)
        for article, story in self.sql(
            "SELECT article_id, story_id FROM story_article WHERE story_id IS NOT NULL"
        ):
            found[story].append(article)
        return sorted(sorted(members) for members in found.values())

    def absorb(self, absorbed: int, survivor: int) -> None:
        """Let one story become part of another, as pass 3 does, with a score of 1 of .5."""
        self.sql(
            "INSERT INTO story_merge (absorbed_id, survivor_id, score, threshold, run_id) "
            "VALUES (%s, %s, 1, 0.5, %s)",
            absorbed,
            survivor,
            self.run_id(),
        )
        self.sql(
            "UPDATE story SET merged_into = %s WHERE %s IN (id, merged_into)", survivor, absorbed
        )
        self.sql("UPDATE story_article SET story_id = %s WHERE story_id = %s", survivor, absorbed)
        self.sql("DELETE FROM story_vector_tiny WHERE story_id = %s", absorbed)

    def story_of(self, article: int) -> int | None:
        return self.one("SELECT story_id FROM story_article WHERE article_id = %s", article)

    def placement(self, article: int):
        (row,) = self.sql(
            "SELECT story_id, placed_in, pass AS pass_name, score, threshold, nearest_id, run_id "
            "FROM story_article WHERE article_id = %s",
            article,
        )
        return row

    def snapshot(self) -> dict[str, list[str]]:
        """Every row of every table with the transaction that wrote it: two are equal only where nothing was written."""
        tables = self.sql(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind = 'r' AND n.nspname = 'public' ORDER BY 1"
        )
        return {
            name: sorted(
                row[0]
                for row in self.sql(f"SELECT xmin::text || ctid::text || t::text FROM {name} t")
            )
            for (name,) in tables
        }

    def check(self) -> None:
        """Recompute the slow way what follows from the members of each story."""
        vectors = {
            article: (time, vector.to_numpy().astype(np.float64))
            for article, time, vector in self.sql(
                "SELECT article_id, event_time, aligned FROM article_vector_tiny"
            )
        }
        loose = {
            a for (a,) in self.sql("SELECT article_id FROM story_article WHERE pass = 'attach'")
        }
        rows = self.sql("SELECT * FROM story WHERE merged_into IS NULL")
        live = {row.id: row for row in rows if row.size}
        centroids = {row.story_id: row for row in self.sql("SELECT * FROM story_vector_tiny")}
        members = defaultdict(list)
        for article, story in self.sql(
            "SELECT article_id, story_id FROM story_article WHERE story_id IS NOT NULL"
        ):
            members[story].append(article)
        assert live.keys() == centroids.keys() == members.keys()
        for story, articles in members.items():
            self._check_readers(live[story], articles, vectors)
            own = [article for article in articles if article not in loose]
            self._check_story(live[story], centroids[story], own, vectors)
        absorbed = self.sql(
            "SELECT count(*) FROM story a JOIN story s ON s.id = a.merged_into WHERE s.merged_into IS NOT NULL"
        )
        assert absorbed[0][0] == 0, "an absorbed id leads to another absorbed one"

    def _languages(self, articles) -> list[str]:
        rows = self.sql("SELECT language FROM article WHERE id = ANY (%s)", list(articles))
        return [language for (language,) in rows]

    def _check_readers(self, story, articles, vectors) -> None:
        times = [vectors[article][0] for article in articles]
        assert story.size == len(articles)
        assert (story.first_time, story.latest_time) == (min(times), max(times))
        assert story.languages == sorted(set(self._languages(articles)))

    def _check_story(self, story, centroid, articles, vectors) -> None:
        times = [vectors[article][0] for article in articles]
        assert centroid.size == len(articles) > 0
        assert (centroid.first_time, centroid.latest_time) == (min(times), max(times))
        recent = sorted(articles, key=lambda a: (vectors[a][0], a))[
            -self.calibration.centroid_members :
        ]
        own = np.stack([vectors[article][1] for article in recent])
        mean = own.mean(axis=0)
        expected = mean / np.linalg.norm(mean)
        assert centroid.centroid.to_numpy() == pytest.approx(expected, abs=2e-3)
        assert centroid.mean_norm == pytest.approx(np.linalg.norm(mean), abs=2e-3)
        cosines = own @ own.T
        n = len(recent)
        cohesion = 1.0 if n == 1 else (cosines.sum() - np.trace(cosines)) / (n * (n - 1))
        assert centroid.cohesion == pytest.approx(cohesion, abs=5e-3)
        spoken = Counter(language.split("-")[0] for language in self._languages(recent))
        assert centroid.languages == pytest.approx(
            {language: number / n for language, number in spoken.items()}
        )
        closest = max(vectors[article][1] @ expected for article in articles)
        assert vectors[story.headline_id][1] @ expected == pytest.approx(closest, abs=2e-3)
        assert story.headline_id in articles
