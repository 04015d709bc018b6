"""The server really uses the indexes and leaves out the partitions: read off EXPLAIN, on some thousands of rows."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from psycopg import sql
from worlds import DIMENSION, START, STEP, World

from clustering.dedup.cascade import fold
from clustering.store.database import drop_database, make_database
from clustering.store.migrations import migrate
from clustering.store.session import Session
from clustering.store.statements import statements
from clustering.stories.near import searched
from clustering.stories.passes import INDEX_SETTINGS

DAYS = 10
A_DAY = 400
WINDOW = {
    "first": START + timedelta(days=4, hours=12),
    "last": START + timedelta(days=4, hours=13),
    "window_first": START + timedelta(days=3, hours=18),
    "window_last": START + timedelta(days=4, hours=18),
}


@pytest.fixture(scope="module")
def history(server, database_numbers):
    """Ten days of 400 articles with random vectors; of the last day, all still wait."""
    name = f"history_{next(database_numbers)}"
    make_database(server.dsn("postgres"), name)
    with closing(Session(server.dsn(name))) as session:
        migrate(session)
        world = World(session)
        fill(world)
        yield world
    drop_database(server.dsn("postgres"), name)


def fill(world: World) -> None:
    count = DAYS * A_DAY
    feed, run_id = world.feed("feed"), world.run_id()
    world.sql(
        "INSERT INTO article (feed_id, guid, title, body, language, language_confidence, event_time, "
        "first_seen, entry_hash, url_hash, content_hash, simhash, band_1, band_2, band_3, band_4, title_sketch, run_id) "
        "SELECT %s, n::text, 'Title', repeat('word ', 300), 'en', 1, t.t, t.t, md5('e' || n)::uuid, md5('u' || n)::uuid, "
        "md5('c' || n)::uuid, hashtextextended('s' || n, 0), hashtextextended('1' || n, 0), hashtextextended('2' || n, 0), "
        "hashtextextended('3' || n, 0), hashtextextended('4' || n, 0), "
        "ARRAY(SELECT hashtextextended('t' || (n * 7 + i * i) %% 5000, 0) h FROM generate_series(1, 9) i ORDER BY h), %s "
        "FROM generate_series(0, %s) AS n, LATERAL (SELECT %s::timestamptz + n * %s::interval AS t) t",
        feed,
        run_id,
        count - 1,
        START,
        timedelta(days=1) / A_DAY,
    )
    random = np.random.default_rng(7)
    vectors = random.normal(size=(count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = world.sql("SELECT id, event_time FROM article ORDER BY id")
    world.embed([(row.id, row.event_time, v) for row, v in zip(rows, vectors, strict=True)])
    last_day = START + timedelta(days=DAYS - 1)
    world.sql("UPDATE story_article SET pass = 'none' WHERE event_time < %s", last_day)
    world.sql("UPDATE article SET encode_due = true WHERE event_time >= %s", last_day)
    world.sql("VACUUM ANALYZE")


def nodes(plan: dict) -> list[dict]:
    return [plan, *(node for part in plan.get("Plans", ()) for node in nodes(part))]


def explain(world: World, name: str, values: dict, **settings: object) -> list[dict]:
    """The nodes of a statement's plan, with settings that last for this plan only."""
    parts = {name: world.session.part(name) for name in ("article_vectors", "story_vectors")}
    text = sql.SQL("EXPLAIN (FORMAT JSON) ") + statements()[name].compose(parts)
    with world.session.transaction(**settings):
        (plan,) = world.session.connection.execute(text, values).fetchone()[0]
    return nodes(plan["Plan"])


def indexes(plan: list[dict]) -> set[str]:
    return {node["Index Name"] for node in plan if "Index Name" in node}


def scanned(plan: list[dict], alias: str) -> set[str]:
    """Tables that are read under an alias; each partition has it with a number behind."""
    return {
        node["Relation Name"]
        for node in plan
        if "Relation Name" in node and node["Alias"].rsplit("_", 1)[0] == alias
    }


def neighbour_values(history: World) -> dict:
    rows = history.sql(
        "SELECT id FROM article WHERE event_time BETWEEN %s AND %s", WINDOW["first"], WINDOW["last"]
    )
    return (
        WINDOW
        | searched(WINDOW["window_first"], WINDOW["window_last"])
        | {"article_ids": [row.id for row in rows], "most": 11}
    )


def neighbours(history: World, values: dict, **settings: object) -> set[tuple[int, int]]:
    with history.session.transaction(**settings):
        rows = history.session.rows("article_neighbours", **values)
    return {(row.article_id, row.other_id) for row in rows}


# Four hundred vectors of a day and dimension are sorted faster than an index is searched, and the
# planner knows: sorting is forbidden here to see that the query's form lets the index be used.
NO_SORT = {"enable_sort": "off", "enable_seqscan": "off", "enable_bitmapscan": "off"}


def test_neighbours_come_from_the_vector_index_of_each_day(history):
    plan = explain(history, "article_neighbours", neighbour_values(history), **NO_SORT)
    used = {name for name in indexes(plan) if "aligned" in name}
    days = {"20260304", "20260305"}
    assert used == {f"article_vector_tiny_{day}_aligned_idx" for day in days}
    ordered = [node for node in plan if "Order By" in node]
    assert len(ordered) == 2
    assert all(node["Node Type"] == "Index Scan" for node in ordered)


def test_neighbours_touch_only_the_windows_days(history):
    plan = explain(history, "article_neighbours", neighbour_values(history))
    assert scanned(plan, "o") == {f"article_vector_tiny_{day}" for day in ("20260304", "20260305")}
    assert {
        node["Relation Name"]
        for node in plan
        if node.get("Relation Name", "").startswith("article_v")
    } == {f"article_vector_tiny_{day}" for day in ("20260304", "20260305")}


def test_days_that_the_window_barely_touches_are_scanned(history):
    """It begins minutes before one midnight and ends minutes after another."""
    edges = {
        "window_first": START + timedelta(days=3, hours=23, minutes=50),
        "window_last": START + timedelta(days=5, minutes=10),
    }
    values = neighbour_values(history) | edges | searched(**edges)
    plan = explain(history, "article_neighbours", values, **NO_SORT)
    assert {name for name in indexes(plan) if "aligned" in name} == {
        "article_vector_tiny_20260305_aligned_idx"
    }
    touched = history.sql(
        "SELECT id FROM article WHERE event_time BETWEEN %s AND %s OR event_time BETWEEN %s AND %s",
        *(edges["window_first"], START + timedelta(days=4)),
        *(START + timedelta(days=5), edges["window_last"]),
    )
    wide = neighbours(history, values | {"most": 2 * A_DAY})
    for row in touched:
        assert {a for a, other in wide if other == row.id} == set(values["article_ids"])


@pytest.fixture(scope="module")
def long_history(history):
    """Three years of old stories beside a few of today, half of the old ones in events."""
    run_id, article = history.run_id(), history.one("SELECT min(id) FROM article")
    history.sql(
        "INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id) "
        "SELECT %s - n * interval '3 hours', %s - n * interval '3 hours', 2, '{en}', 1, %s, %s "
        "FROM generate_series(0, 8999) n",
        START,
        START,
        article,
        run_id,
    )
    vector = "[1,0,0,0,0,0,0,0]"
    history.sql(
        "INSERT INTO story_vector_tiny (story_id, first_time, latest_time, size, cohesion, languages, mean_norm, centroid) "
        "SELECT id, first_time, latest_time, 2, 1, '{}', 1, %s FROM story",
        vector,
    )
    history.sql(
        "INSERT INTO event (first_time, latest_time, run_id) "
        "SELECT %s - n * interval '6 hours', %s - n * interval '6 hours', %s FROM generate_series(0, 4499) n",
        START,
        START,
        run_id,
    )
    history.sql(
        "INSERT INTO event_story (story_id, event_id, placed_in, score, threshold, nearest_id, run_id) "
        "SELECT id, 1 + id / 2 %% 4500, 1 + id / 2 %% 4500, 1, 1, id, %s FROM story WHERE id %% 2 = 0",
        run_id,
    )
    history.sql("ANALYZE")
    return history


def linked(history: World) -> dict[str, dict]:
    """What a pass over events asks for one changed story, statement by statement."""
    today = history.one("SELECT id FROM story ORDER BY latest_time DESC LIMIT 1")
    near = {"window": timedelta(days=7), "penalty": 0.05, "most": 51, "least": 2}
    return {
        "near_clusters": near | {"clusters": [-today]},
        "clusters_of": {"story_ids": [today], "least": 2},
        "refresh_events": {"story_ids": [today]},
        "emptied_events": {"absorbed_ids": [today]},
        "inherit_events": {"absorbed_ids": [today], "run_id": 1},
        "changed_stories": {"most": 500},
    }


@pytest.mark.parametrize(
    "name",
    [
        "near_clusters",
        "clusters_of",
        "refresh_events",
        "emptied_events",
        "inherit_events",
        "changed_stories",
    ],
)
def test_linking_a_story_reads_no_table_of_stories_or_events_whole(long_history, name):
    plan = explain(long_history, name, linked(long_history)[name])
    whole = {node.get("Relation Name") for node in plan if node["Node Type"] == "Seq Scan"}
    assert not whole & {"story", "story_vector_tiny", "event", "event_story"}, whole


def test_the_index_finds_what_an_exact_search_finds(history):
    values = neighbour_values(history)
    exact = neighbours(history, values, enable_indexscan="off")
    near = neighbours(history, values, **NO_SORT, **INDEX_SETTINGS)
    assert len(exact) == 10 * len(values["article_ids"])
    assert len(near) == len(exact)
    assert len(near & exact) >= 0.95 * len(exact)


@pytest.mark.parametrize(
    ("name", "alias", "index"),
    [
        ("entry_twins", "o", "article_entry_hash"),
        ("url_twins", "o", "article_url_hash"),
        ("content_twins", "o", "article_content_hash"),
    ],
)
def test_twins_are_looked_up_by_their_hash(history, name, alias, index):
    plan = explain(history, name, {"article_ids": list(range(1, 21))})
    assert index in indexes(plan)
    assert not [node for node in plan if node["Node Type"] == "Seq Scan" and node["Alias"] == alias]


def whole_scans(plan: list[dict], table: str = "article") -> list[dict]:
    return [
        node for node in plan if node["Node Type"] == "Seq Scan" and node["Relation Name"] == table
    ]


def test_near_copies_are_looked_up_by_each_band_within_the_window(history):
    values = {"article_ids": list(range(1, 21)), "radius": 16, "most": 10}
    plan = explain(history, "simhash_twins", values)
    bands = {f"article_band_{number}" for number in (1, 2, 3, 4)}
    assert bands <= indexes(plan)
    for node in plan:
        if node.get("Index Name") in bands:
            assert "event_time" in node["Index Cond"]
    assert not whole_scans(plan)


def test_like_titles_are_looked_up_by_hash_and_span_of_days(history):
    values = {"article_ids": list(range(1, 21)), "threshold": 0.4, "run_id": 1}
    plan = explain(history, "flag_titles", values)
    assert "article_title_sketch" in indexes(plan)
    assert not whole_scans(plan)


def test_what_waits_is_found_by_the_index_of_what_waits(history):
    far = datetime(2100, 1, 1, tzinfo=UTC)
    plan = explain(history, "next_slice", slice_values(history, far))
    assert indexes(plan) == {"story_article_pending"}
    plan = explain(
        history, "articles_due", {"as_of": far, "now": far, "lede_chars": 600, "most": 100}
    )
    assert indexes(plan) == {"article_encode_due"}
    plan = explain(history, "count_due", {"as_of": far, "now": far})
    assert indexes(plan) == {"article_encode_due"}


def slice_values(history: World, as_of: datetime) -> dict:
    """What `next_slice` takes, whichever way a slice's edges are given."""
    known = {"as_of": as_of, "step": STEP, "origin": datetime(2000, 1, 1, tzinfo=UTC)}
    return {name: known[name] for name in statements()["next_slice"].parameters}


def test_known_articles_are_found_by_feed_and_guid(history):
    values = {"feed_ids": [1] * 20, "guids": [str(number) for number in range(20)]}
    plan = explain(history, "known_articles", values)
    assert indexes(plan) == {"article_feed_id_guid_key"}


def test_the_latest_processed_article_is_one_look_into_an_index(history):
    plan = explain(history, "latest_processed", {})
    assert indexes(plan) == {"story_article_processed"}
    assert "Sort" not in {node["Node Type"] for node in plan}


def test_folding_reads_no_whole_table(history):
    """The cascade as it runs, with the server's own count of sequential scans."""
    run_id = history.run_id()
    twin = history.article(guid="twin", url_hash=UUID(int=5))
    copy = history.article(guid="copy", url_hash=UUID(int=5))

    def whole_reads() -> int:
        history.sql("SELECT pg_stat_force_next_flush()")
        return history.one("SELECT seq_scan FROM pg_stat_user_tables WHERE relname = 'article'")

    before = whole_reads()
    with history.session.transaction():
        links = fold(history.session, [twin, copy], run_id)
    assert [(link.article_id, link.canonical_id) for link in links] == [(copy, twin)]
    assert whole_reads() == before
