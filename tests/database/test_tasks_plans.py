"""What tasks cost does not grow with the history: read off EXPLAIN and the server's own counts."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import timedelta
from uuid import UUID

import pytest
from told import START, Told

from clustering.store.database import drop_database, make_database
from clustering.store.migrations import migrate
from clustering.store.session import Session
from clustering.store.statements import statements
from clustering.stories.reading import list_stories
from clustering.tasks.changes import changes_after, latest_change
from clustering.tasks.leases import _BY_KEY, Wanted, complete, lease_tasks, retry

DAYS = 200
A_DAY = 500
TOTAL = DAYS * A_DAY
WINDOW = {
    "name": "score",
    "since": START + timedelta(days=DAYS - 7),
    "min_size": 2,
    "languages": None,
    "most": 50,
}


@pytest.fixture(scope="module")
def history(server, database_numbers):
    """Two hundred days of 500 stories, all scored, one in ten by a merge; nothing waits."""
    name = f"tasks_{next(database_numbers)}"
    make_database(server.dsn("postgres"), name)
    with closing(Session(server.dsn(name))) as session:
        migrate(session)
        told = Told(session)
        fill(told)
        yield told
    drop_database(server.dsn("postgres"), name)


def fill(told: Told) -> None:
    headline, run_id = told.article(), told.run_id()
    told.sql("ALTER TABLE story DISABLE TRIGGER USER")
    told.sql(
        "INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id, change, first_change) "
        "SELECT t, t, 5, '{en,es}', 3, %s, %s, n, n FROM generate_series(1, %s) n, "
        "LATERAL (SELECT %s::timestamptz + n * %s::interval AS t) x",
        headline,
        run_id,
        TOTAL,
        START,
        timedelta(days=1) / A_DAY,
    )
    told.sql("SELECT setval('story_change', %s)", TOTAL)
    told.sql("UPDATE story SET merged_into = id + 1 WHERE id %% 10 = 0 AND id < %s", TOTAL)
    told.sql("ALTER TABLE story ENABLE TRIGGER USER")
    told.sql(
        "INSERT INTO task (name, story_id, state, result, done_as, done_at) "
        "SELECT 'score', id, 'done', '{}', ROW(size, languages, headline_id, "
        "ARRAY(SELECT a.id FROM story a WHERE a.merged_into = s.id))::story_seen, now() FROM story s"
    )
    told.sql(
        "WITH e AS (INSERT INTO event (first_time, latest_time, run_id) VALUES (%s, %s, %s) RETURNING id, run_id) "
        "INSERT INTO event_story (story_id, event_id, placed_in, score, threshold, nearest_id, run_id) "
        "SELECT s.id, e.id, e.id, 1, 1, s.id, e.run_id FROM story s, e",
        START,
        START + timedelta(days=DAYS),
        run_id,
    )
    told.sql("INSERT INTO story_score SELECT id, 'score', random(), 'score' FROM story")
    told.sql("VACUUM ANALYZE")


def nodes(plan: dict) -> list[dict]:
    return [plan, *(node for part in plan.get("Plans", ()) for node in nodes(part))]


def explain(told: Told, name: str, values: dict, **settings: object) -> list[dict]:
    text = f"EXPLAIN (FORMAT JSON) {statements()[name].text}"
    with told.session.transaction(**settings):
        (plan,) = told.session.connection.execute(text, values).fetchone()[0]
    return nodes(plan["Plan"])


def indexes(plan: list[dict]) -> set[str]:
    return {node["Index Name"] for node in plan if "Index Name" in node}


def whole_reads(plan: list[dict]) -> set[str]:
    return {node["Relation Name"] for node in plan if node["Node Type"] == "Seq Scan"}


def test_handing_out_reads_the_window_and_the_tasks_of_its_stories(history):
    plan = explain(history, "lease_tasks", WINDOW | {"lease": timedelta(minutes=10)}, **_BY_KEY)
    assert {"story_latest", "task_pkey", "story_merged"} <= indexes(plan)
    assert whole_reads(plan) == set()
    plan = explain(history, "enrol_stories", WINDOW, **_BY_KEY)
    assert {"story_latest", "task_pkey"} <= indexes(plan)
    assert whole_reads(plan) == set()


def test_asking_touches_no_more_rows_than_the_window_has(history):
    """The server's own counts of rows fetched by index, tables and all, against 100,000 stories."""

    def fetched() -> int:
        history.sql("SELECT pg_stat_force_next_flush()")
        return history.one(
            "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables "
            "WHERE relname IN ('story', 'task')"
        )

    before = fetched()
    assert lease_tasks(history.session, "score", Wanted()) == []
    window = 7 * A_DAY
    assert fetched() - before < 8 * window < TOTAL


def test_what_came_of_it_is_found_by_key(history):
    claim = {"name": "score", "story_id": 7, "token": UUID(int=1)}
    plan = explain(history, "complete_task", claim | {"result": None})
    assert indexes(plan) == {"task_pkey"}
    plan = explain(history, "fail_task", claim | {"state": "failed", "error": "", "wait": "1 min"})
    assert indexes(plan) == {"task_pkey"}
    plan = explain(history, "retry_tasks", {"name": "score", "story_ids": None})
    assert indexes(plan) == {"task_troubled"}
    plan = explain(history, "story_scores", {"story_ids": [1, 2, 3]})
    assert indexes(plan) == {"story_score_pkey"}
    plan = explain(history, "results_of_absorbed", {"name": "score", "story_ids": [1, 2]})
    assert indexes(plan) == {"story_merged", "task_pkey"}


def test_the_highest_scores_come_from_their_index(history):
    values = {"score": "score", "min_size": 2, "since": None, "until": None, "most": 20}
    plan = explain(history, "list_stories_by_score", values)
    assert "story_score_value" in indexes(plan)
    assert "Sort" not in {node["Node Type"] for node in plan}
    found = list_stories(history.session, sort="score", most=20)
    best = "SELECT x.value FROM story_score x JOIN story s ON s.id = x.story_id WHERE s.merged_into IS NULL ORDER BY 1 DESC LIMIT 20"
    assert [story.score for story in found] == [row.value for row in history.sql(best)]


def test_changes_come_from_their_index(history):
    last = latest_change(history.session)
    plan = explain(history, "changes_after", {"after": last - 9, "known": last - 9, "most": 500})
    assert "story_by_change" in indexes(plan)
    assert whole_reads(plan) <= {"article"}
    assert "Sort" not in {node["Node Type"] for node in plan}
    plan = explain(history, "latest_change", {})
    assert "story_by_change" in indexes(plan)
    assert len(list(changes_after(history.session, last - 9))) == 9


def test_a_page_of_an_export_begins_where_the_last_ended(history):
    values = {
        "min_size": 2,
        "since": None,
        "until": None,
        "after_time": START + timedelta(days=100),
        "after_id": 100 * A_DAY,
        "most": 50,
    }
    plan = explain(history, "page_of_stories", values)
    assert "story_latest" in indexes(plan)
    assert whole_reads(plan) <= {"article"}


def test_hundreds_of_stories_are_leased_and_done_in_seconds(history):
    last = START + timedelta(days=DAYS - 1)
    history.sql("UPDATE story SET size = 50 WHERE latest_time > %s", last)
    start = time.perf_counter()
    done = 0
    while found := lease_tasks(history.session, "score", Wanted(50)):
        for lease in found:
            complete(history.session, lease, {"score": 1})
        done += len(found)
    seconds = time.perf_counter() - start
    print(f"{done} tasks in {seconds:.2f} s, {1000 * seconds / done:.1f} ms each")
    assert done == history.one(
        "SELECT count(*) FROM story WHERE latest_time > %s AND merged_into IS NULL", last
    )
    assert seconds < 30
    assert retry(history.session, "score") == 0
