"""Whole runs, each in a process of its own as from cron: an hour against a long history, a day from a file."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from clustering.engine.demo import sample_day

if TYPE_CHECKING:
    from pathlib import Path

_CLUSTER = """
import json, sys, time, warnings
from pathlib import Path
from clustering import Engine
warnings.simplefilter("ignore")
with Engine.open(sys.argv[1], home=Path(sys.argv[2])) as engine:
    start = time.perf_counter()
    report = engine.cluster()
    seconds = time.perf_counter() - start
assert "torch" not in sys.modules
# Not getrusage: its peak is carried over from the process that forked this one.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak_mib = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps({"seconds": seconds, "peak_mib": peak_mib, "counts": dict(report.counts)}))
"""


def cluster(dsn: str, home: Path) -> dict:
    """Cluster what waits; returns `seconds`, `peak_mib` of the process, `counts`."""
    command = [sys.executable, "-c", _CLUSTER, dsn, str(home)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def write_day(path: Path, articles: int, seed: int = 1) -> None:
    """Write the articles of the last 24 hours as JSON Lines, put together from two of the sample day each.

    Sentences keep their script and length, which is what encoding takes its time for; a number keeps
    each text its own.
    """
    rng = random.Random(seed)
    known = sample_day()
    begin = datetime.now(UTC) - timedelta(days=1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(articles):
            one, other = rng.choice(known), rng.choice(known)
            source = f"https://feed-{number % 180}.example/"
            row = {
                "id": f"day-{number}",
                "source": source,
                "url": f"{source}{number}",
                "title": f"{_half(one.title)} {number} {_half(other.title)}",
                "body": f"{one.body} {number} {other.body}",
                "published_at": (begin + timedelta(days=1) * number / articles).isoformat(),
            }
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _half(text: str) -> str:
    return text[: len(text) // 2]


def day(path: Path, home: Path) -> dict:
    """Run the hourly command on a day's file; returns `seconds` from start to end, and its `report`."""
    command = [sys.executable, "-m", "clustering", "run", str(path), "--home", str(home), "--json"]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {"seconds": time.perf_counter() - start, "report": json.loads(done.stdout)}
