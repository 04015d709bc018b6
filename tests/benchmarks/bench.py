"""The benchmarks: a table of ratios, and `build/benchmarks.json`.

    make bench                             # 1,000,000 stored articles: half an hour on two cores
    make bench BENCH_ARGS="--stored 100000 --day 1000"

Vectors are made up (`stream.py`), texts are those of the sample day. Ratios are of one run on one machine;
seconds and milliseconds belong to the machine that is named beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import stream
import timed_encoding
import timed_peers
import timed_runs
import timed_windows
from stream import Batch, Stream, Writer

from clustering.evaluation.scores import bcubed
from clustering.store.database import make_database
from clustering.store.embedded import EmbeddedServer
from clustering.store.migrations import migrate
from clustering.store.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

REPORT = Path("build/benchmarks.json")
KEYS = (
    "encode_ratio",
    "encode_cosine_min",
    "knn_ms",
    "knn_recall",
    "knn_cost_ratio_1m_50k",
    "hour_seconds",
    "day_seconds",
    "cluster_peak_mib",
)


@dataclass(frozen=True)
class Sizes:
    """How much is measured, in articles."""

    stored: int = 1_000_000
    stored_before: int = 50_000
    live: int = 20_000
    new: int = 500
    day: int = 11_000
    peers: int = 5_500
    texts: int = 400


def measure(server: EmbeddedServer, home: Path, sizes: Sizes) -> dict[str, object]:
    """Run every part; returns the figures by name."""
    found: dict[str, object] = {}
    for name, part in (
        ("encoding", lambda: timed_encoding.measure(home, sizes.texts)),
        ("peers", lambda: peers(server, home, sizes)),
        ("windows and hour", lambda: histories(server, home, sizes)),
        ("day", lambda: day(home, sizes)),
    ):
        found |= _told(name, part)
    return found


def _told(name: str, part: Callable[[], dict[str, object]]) -> dict[str, object]:
    start = time.perf_counter()
    found = part()
    print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return found


def histories(server: EmbeddedServer, home: Path, sizes: Sizes) -> dict[str, object]:
    """The windows at a short history and at a long one, and an hour's clustering at the long one."""
    short = _window_costs(server, "short", sizes.stored_before)
    dsn = _database(server, "long")
    with closing(Session(dsn)) as session:
        long = _stored(session, sizes.stored)
        costs = timed_windows.measure(session, long)
        costs |= timed_windows.published(session, long)
        # A live window that the engine made itself, days after the history.
        days = Stream(seed=2)
        writer = Writer(session)
        for batch in days.before(8, sizes.live):
            writer.queue(batch)
        session.connection.execute("VACUUM ANALYZE")
        window = timed_runs.cluster(dsn, home)
        writer.queue(Batch(*(part[: sizes.new] for part in days.day(8))))
        session.connection.execute("VACUUM ANALYZE")
        hour = timed_runs.cluster(dsn, home)
    ratios = [costs[name] / short[name] for name in ("knn_ms", "candidates_ms")]
    return costs | {
        "knn_ms_short": short["knn_ms"],
        "candidates_ms_short": short["candidates_ms"],
        "knn_cost_ratio_1m_50k": ratios[0],
        "candidates_cost_ratio_1m_50k": ratios[1],
        "live_window_seconds": window["seconds"],
        "hour_seconds": hour["seconds"],
        "cluster_peak_mib": max(window["peak_mib"], hour["peak_mib"]),
    }


def peers(server: EmbeddedServer, home: Path, sizes: Sizes) -> dict[str, object]:
    """The passes and HDBSCAN on the vectors of half a day."""
    batch = Batch(*(part[: sizes.peers] for part in Stream(seed=3).day(0)))
    dsn = _database(server, "peers")
    with closing(Session(dsn)) as session:
        ids = Writer(session).queue(batch)
        ours = timed_runs.cluster(dsn, home)
        rows = session.connection.execute("SELECT article_id, story_id FROM story_article")
        stories = dict(rows.fetchall())
    placed = timed_peers.singletons([stories[article] for article in ids])
    return timed_peers.hdbscan(batch) | {
        "passes_seconds": ours["seconds"],
        "passes_bcubed": bcubed(batch.stories, placed).f1,
    }


def day(home: Path, sizes: Sizes) -> dict[str, object]:
    """A day's articles from a file to stories."""
    path = home / "day.jsonl"
    timed_runs.write_day(path, sizes.day)
    done = timed_runs.day(path, home)
    return {
        "day_seconds": done["seconds"],
        "day_articles": sizes.day,
        "day_stages": done["report"]["seconds"],
        "day_counts": done["report"]["counts"],
    }


def _window_costs(server: EmbeddedServer, name: str, stored: int) -> dict[str, float]:
    with closing(Session(_database(server, name))) as session:
        return timed_windows.measure(session, _stored(session, stored))


def _stored(session: Session, stored: int) -> timed_windows.Window:
    """Fill a database with a history; returns the window of its last day."""
    writer = Writer(session)
    for batch in Stream().before(0, stored):
        ids = writer.settle(batch)
        last = batch
    session.connection.execute("VACUUM ANALYZE")
    return timed_windows.window_of(ids, last)


def _database(server: EmbeddedServer, name: str) -> str:
    make_database(server.dsn("postgres"), name)
    with closing(Session(server.dsn(name))) as session:
        migrate(session)
        stream.use(session)
    return server.dsn(name)


def machine() -> dict[str, str]:
    """What the figures belong to."""
    names = [
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    packages = ("torch", "sentence-transformers", "psycopg", "numpy", "scikit-learn")
    return {
        "cpu": f"{names[0].split(':')[1].strip() if names else platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
    }


def table(found: dict[str, object]) -> str:
    """The ratios, in Markdown."""
    figure = {name: value for name, value in found.items() if isinstance(value, int | float)}
    rows = [
        ("encoding, against plain sentence-transformers", figure["encode_ratio"]),
        ("window query, published SQL on one table", figure["published_ms"] / figure["knn_ms"]),
        ("window query, exact NumPy", figure["exact_numpy_ms"] / figure["knn_ms"]),
        ("half a day, HDBSCAN", figure["hdbscan_seconds"] / figure["passes_seconds"]),
    ]
    lines = [f"| {name} | {ratio:.2f} |" for name, ratio in rows]
    return "\n".join(["| what, against whom | times as fast |", "|---|---|", *lines])


def main() -> None:
    """Measure, write the report and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for size in fields(Sizes):
        parser.add_argument(f"--{size.name.replace('_', '-')}", type=int, default=size.default)
    sizes = Sizes(**vars(parser.parse_args()))
    with (
        tempfile.TemporaryDirectory(prefix="stories-bench-", ignore_cleanup_errors=True) as folder,
        closing(EmbeddedServer(Path(folder) / "server")) as server,
    ):
        server.start()
        found = measure(server, Path(folder) / "home", sizes)
    REPORT.parent.mkdir(exist_ok=True)
    whole = {name: found[name] for name in KEYS} | found | {"sizes": vars(sizes), **machine()}
    REPORT.write_text(json.dumps(whole, indent=1) + "\n")
    print(json.dumps(whole, indent=1))
    print(table(found))


if __name__ == "__main__":
    main()
