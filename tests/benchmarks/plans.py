"""EXPLAIN (ANALYZE, BUFFERS) of the hot queries after two days of 11,000 articles, in Markdown.

.venv/bin/python tests/benchmarks/plans.py > docs/plans.md
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import stream
from psycopg.rows import scalar_row
from stream import Stream, Writer

from clustering.store.database import make_database
from clustering.store.embedded import EmbeddedServer
from clustering.store.migrations import migrate
from clustering.store.session import Session
from clustering.store.statements import statements
from clustering.stories.near import searched
from clustering.stories.passes import INDEX_SETTINGS

GAP, AGE = timedelta(hours=24), timedelta(hours=72)
ASKING = 20
FAR = datetime(2100, 1, 1, tzinfo=UTC)
HEADING = """# Plans of the hot queries

`EXPLAIN (ANALYZE, BUFFERS)` for {asking} articles (or their stories) at a time, after two days of 11,000
made-up articles; written by `tests/benchmarks/plans.py`. `tests/database/test_store_plans.py` holds the
forms: which index, which partitions, no table of all history read whole.
"""


def parameters(session: Session) -> dict[str, dict[str, object]]:
    """What each hot query is asked for the last articles."""
    rows = session.connection.execute(
        f"SELECT article_id, event_time FROM {stream.SPACE.article_table} "
        "ORDER BY event_time DESC LIMIT %s",
        (ASKING,),
    ).fetchall()
    ids, times = [row[0] for row in rows], [row[1] for row in rows]
    stories = session.connection.cursor(row_factory=scalar_row)
    stories.execute(
        "SELECT id FROM story WHERE latest_time > %s ORDER BY id DESC LIMIT %s",
        (times[0] - timedelta(hours=6), ASKING),
    )
    story_ids = stories.fetchall()
    asked = {"article_ids": ids, "first": min(times), "last": max(times)}
    window = {"window_first": min(times) - GAP, "window_last": max(times)}
    edges = searched(**window)
    bound = {"penalty": 0.16, "tightest": 0.72}
    near = {"window": timedelta(days=7), "penalty": 0.05, "most": 51, "least": 2}
    return {
        "article_neighbours": asked | window | edges | {"most": 51},
        "story_candidates": asked | {"gap": GAP, "age": AGE, "most": 50},
        "loose_near": {"story_ids": story_ids, "least": 0.3} | bound | window,
        "nearest_stories": {
            "story_ids": story_ids,
            "least": 0.53,
            "most": 50,
            "live_from": min(times) - GAP,
            "live_to": max(times) + GAP,
        }
        | bound,
        "near_clusters": near | {"clusters": [-story for story in story_ids]},
        "articles_due": {"as_of": FAR, "now": FAR, "lede_chars": 600, "most": 1024},
        "url_twins": {"article_ids": ids},
        "content_twins": {"article_ids": ids},
        "simhash_twins": {"article_ids": ids, "radius": 16, "most": 10},
    }


def explain(session: Session, name: str, values: dict[str, object]) -> str:
    """The plan of a query as the server ran it, without the planner's guesses."""
    query = statements()[name].compose(session._parts)
    text = query.as_string(session.connection)
    with session.transaction(**INDEX_SETTINGS):
        rows = session.connection.execute(
            f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF) {text}", values
        ).fetchall()
    return "\n".join(row[0] for row in rows)


def main() -> None:
    """Fill a server, explain, print."""
    with (
        tempfile.TemporaryDirectory(prefix="stories-plans-", ignore_cleanup_errors=True) as home,
        closing(EmbeddedServer(Path(home))) as server,
    ):
        server.start()
        make_database(server.dsn("postgres"), "plans")
        with closing(Session(server.dsn("plans"))) as session:
            migrate(session)
            stream.use(session)
            writer = Writer(session)
            for batch in Stream().before(0, 2 * stream.A_DAY):
                writer.settle(batch)
            session.connection.execute("VACUUM ANALYZE")
            print(HEADING.format(asking=ASKING))
            for name, values in parameters(session).items():
                explain(session, name, values)  # warms the cache
                plan = "\n".join(line[:160] for line in explain(session, name, values).splitlines())
                print(f"## {name}\n\n```text\n{plan}\n```\n")


if __name__ == "__main__":
    main()
