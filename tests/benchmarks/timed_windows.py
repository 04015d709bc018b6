"""What a look into the window costs at a short and at a long history, and what other ways cost."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pgvector import HalfVector
from stream import SPACE

from clustering.stories.near import searched
from clustering.stories.passes import INDEX_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from stream import Batch

    from clustering.store.session import Session

NEIGHBOURS = 10
QUERIES = 200
ROUNDS = 3
GAP = timedelta(hours=24)
AGE = timedelta(hours=72)


class Window(NamedTuple):
    """The last day of a history as the passes see it, and the articles that ask.

    Attributes:
        ids: every article of the window, of shape (n,).
        vectors: theirs, float32 (n, 384).
        asking: places of the articles that ask.
        times: event times.
    """

    ids: NDArray[np.int64]
    vectors: NDArray[np.float32]
    asking: NDArray[np.int64]
    times: list


def window_of(ids: Sequence[int], batch: Batch, queries: int = QUERIES) -> Window:
    """The window of a day's last hours: the asking articles are spread over it."""
    asking = np.linspace(0, len(ids) - 1, min(queries, len(ids))).astype(np.int64)
    # As the database keeps them.
    vectors = batch.vectors.astype(np.float16).astype(np.float32)
    return Window(np.array(ids), vectors, asking, batch.times)


def exact(window: Window) -> tuple[list[set[int]], float]:
    """The true neighbours by one matrix product; returns them and milliseconds an article."""
    start = time.perf_counter()
    cosines = window.vectors[window.asking] @ window.vectors.T
    cosines[np.arange(len(window.asking)), window.asking] = -2
    places = np.argpartition(-cosines, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
    spent = time.perf_counter() - start
    found = [set(window.ids[row].tolist()) for row in places]
    return found, 1000 * spent / len(window.asking)


def recall(found: Sequence[set[int]], true: Sequence[set[int]]) -> float:
    """Share of the true neighbours that were found."""
    return sum(len(a & b) for a, b in zip(found, true, strict=True)) / sum(map(len, true))


def neighbours(session: Session, window: Window) -> tuple[list[set[int]], float]:
    """Pass 2's query over the window, by its median round; returns what it found and ms an article."""
    asked = window.ids[window.asking].tolist()
    bounds = {"window_first": window.times[0], "window_last": window.times[-1]}
    spent = []
    for _ in range(ROUNDS):
        with session.transaction(**INDEX_SETTINGS):
            start = time.perf_counter()
            rows = session.rows(
                "article_neighbours",
                article_ids=asked,
                first=window.times[0],
                last=window.times[-1],
                **bounds,
                **searched(**bounds),
                most=NEIGHBOURS + 1,
            )
            spent.append(time.perf_counter() - start)
    found: dict[int, set[int]] = {article: set() for article in asked}
    for row in rows:
        found[row.article_id].add(row.other_id)
    return list(found.values()), 1000 * float(np.median(spent)) / len(asked)


def candidates(session: Session, window: Window) -> float:
    """Pass 1's query, by its median round; milliseconds an article."""
    asked = window.ids[window.asking].tolist()
    spent = []
    for _ in range(ROUNDS):
        with session.transaction(**INDEX_SETTINGS):
            start = time.perf_counter()
            session.rows(
                "story_candidates",
                article_ids=asked,
                first=window.times[0],
                last=window.times[-1],
                gap=GAP,
                age=AGE,
                most=NEIGHBOURS,
            )
            spent.append(time.perf_counter() - start)
    return 1000 * float(np.median(spent)) / len(asked)


def measure(session: Session, window: Window) -> dict[str, float]:
    """Both passes' queries: ms an article and recall@10 against exact search."""
    true, exact_ms = exact(window)
    found, knn_ms = neighbours(session, window)
    return {
        "knn_ms": knn_ms,
        "knn_recall": recall(found, true),
        "candidates_ms": candidates(session, window),
        "exact_numpy_ms": exact_ms,
    }


def published(session: Session, window: Window) -> dict[str, float]:
    """The published form: one table of all articles, one index, the window in WHERE (3mins.news)."""
    connection = session.connection
    connection.execute(
        f"CREATE TABLE one_table AS SELECT article_id, event_time, aligned FROM {SPACE.article_table}"
    )
    connection.execute("CREATE INDEX ON one_table (event_time)")
    connection.execute("SET maintenance_work_mem = '2GB'")
    connection.execute("CREATE INDEX ON one_table USING hnsw (aligned halfvec_cosine_ops)")
    connection.execute("RESET maintenance_work_mem")
    connection.execute("ANALYZE one_table")
    true, _ = exact(window)
    found, spent = [], 0.0
    with session.transaction(hnsw__ef_search=INDEX_SETTINGS["hnsw__ef_search"]):
        for place in window.asking:
            start = time.perf_counter()
            rows = connection.execute(
                "SELECT article_id FROM one_table WHERE event_time BETWEEN %s AND %s "
                "ORDER BY aligned <=> %s LIMIT %s",
                (
                    window.times[0],
                    window.times[-1],
                    HalfVector(window.vectors[place]),
                    NEIGHBOURS + 1,
                ),
            ).fetchall()
            spent += time.perf_counter() - start
            found.append({row[0] for row in rows} - {int(window.ids[place])})
    connection.execute("DROP TABLE one_table")
    return {
        "published_ms": 1000 * spent / len(window.asking),
        "published_recall": recall(found, true),
        "published_rows_share": sum(map(len, found)) / (NEIGHBOURS * len(found)),
    }
