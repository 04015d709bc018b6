"""Running the engine: what a run leaves, what a second one does not, and who may run at once."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from psycopg.conninfo import make_conninfo

from clustering import Article, Engine, StoriesError
from clustering.embedding.partitions import make_partitions
from clustering.engine.replay import in_steps
from clustering.engine.runs import run_lock
from clustering.errors import ModelError, NotFoundError, RunLocked
from clustering.store.database import make_database
from clustering.store.session import Session

CHANGES = """
    SELECT relname, n_tup_ins + n_tup_upd + n_tup_del AS changes
    FROM pg_stat_user_tables ORDER BY relname
"""
STORM = "Storm Ilva floods the port of Kestrel Bay, two thousand people leave their homes"
STORM_ES = "La tormenta Ilva inunda el puerto de Kestrel Bay y desaloja a dos mil vecinos"
CHESS = "Chess: Marit Oskel beats the champion in the final game and takes the title"


def changes(dsn):
    """Changed rows by table, as the statistics have it once every session has ended."""
    session = Session(dsn)
    session.connection.execute("SELECT pg_stat_force_next_flush()")
    session.connection.execute("SELECT pg_stat_clear_snapshot()")
    found = dict(session.connection.execute(CHANGES).fetchall())
    session.close()
    return found


def hour(number, **values):
    base = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(hours=number)
    return Article(published_at=base, **values)


def storm(number, language="en", title=STORM, **values):
    return hour(
        number,
        id=f"storm-{number}",
        source=f"wire {number}",
        title=title,
        language=language,
        **values,
    )


def partition(engine):
    """The stories as sets of guids: what does not depend on ids."""
    return {
        frozenset(article.guid for article in story.articles)
        for story in engine.stories(min_size=1)
    }


def test_a_second_run_changes_no_row(dsn, model_home, sample_lines, write):
    path = write("day.jsonl", *sample_lines[:60])
    with Engine.open(dsn, home=model_home) as engine:
        first = engine.run([str(path)])
    before = changes(dsn)
    with Engine.open(dsn, home=model_home) as engine:
        second = engine.run([str(path)])
    assert first.counts["new"] > 40
    assert sum(before.values()) > 200
    assert second.run_id is None
    assert second.counts == {"new": 0, "changed": 0, "unchanged": 60, "duplicate": 0}
    assert changes(dsn) == before


def test_a_run_reports_counts_and_seconds_by_stage(engine):
    engine.ingest(
        [storm(0), storm(1, "es", STORM_ES), hour(1, id="c", title=CHESS)], first_seen=seen
    )
    report = engine.cluster()
    assert report.run_id == 2
    assert report.counts["encoded"] == 3
    assert report.counts["stories"] == 1
    assert report.counts["discovered"] == 2
    assert report.seconds.keys() == {"encode", "match", "discover", "merge", "events"}
    assert all(spent > 0 for spent in report.seconds.values())


def seen(article):
    return article.published_at


def test_articles_in_two_languages_become_one_story(engine):
    engine.play([storm(0), storm(1, "es", STORM_ES), hour(1, id="c", title=CHESS, language="en")])
    (story,) = engine.stories()
    assert story.languages == ("en", "es")
    assert story.sources == story.size == 2
    assert {article.guid for article in story.articles} == {"storm-0", "storm-1"}
    assert story.headline in {STORM, STORM_ES}
    assert story.first_time == story.articles[0].event_time
    assert story.latest_time == story.articles[-1].event_time
    assert np.linalg.norm(story.centroid) == pytest.approx(1, abs=1e-3)
    assert story.centroid.shape == (384,)
    assert story.centroid.dtype == np.float32


def test_each_placement_says_pass_score_threshold_nearest_and_run(engine):
    engine.play([storm(0), storm(1, "es", STORM_ES), storm(3, title=STORM + " overnight")])
    (story,) = engine.stories()
    first, second, third = story.articles
    assert (first.pass_name, second.pass_name, third.pass_name) == ("discover", "discover", "match")
    assert first.nearest_id == second.id
    assert second.nearest_id == first.id
    assert third.nearest_id == first.id
    for article in story.articles:
        assert article.score >= article.threshold > 0
        assert article.run_id == 1


def test_a_replay_is_what_the_hourly_job_does(dsn, engine, model_home, sample_articles):
    some = sorted(sample_articles, key=lambda article: article.published_at)[:70]
    engine.play(some)
    played = partition(engine)
    assert max(map(len, played)) >= 4
    with Engine.open(beside(dsn, "by_hand"), home=model_home) as by_hand:
        for step in in_steps(some, timedelta(hours=1)):
            by_hand.ingest(step, first_seen=seen)
            by_hand.cluster()
        assert partition(by_hand) == played


def test_stories_do_not_depend_on_the_order_of_a_batch(dsn, engine, model_home, sample_articles):
    some = [article for article in sample_articles if article.id != "live"][:60]
    for opened, articles in ((engine, some), (None, some[::-1])):
        with Engine.open(beside(dsn, "reversed"), home=model_home) as other:
            used = opened or other
            used.ingest(articles, first_seen=seen)
            used.cluster()
            found = partition(used)
        if opened:
            expected = found
    assert found == expected


def beside(dsn, name):
    """Connection string of an empty database on the same server."""
    make_database(dsn, name)
    return make_conninfo(dsn, dbname=name)


def test_an_edit_is_encoded_again_and_stays_in_its_story(engine):
    engine.play([storm(0), storm(1, "es", STORM_ES)])
    (before,) = engine.stories()
    edited = storm(1, "es", STORM_ES + ": ya son tres mil")
    report = engine.ingest([edited], first_seen=seen)
    assert report.counts == {"new": 0, "changed": 1, "unchanged": 0, "duplicate": 0}
    assert engine.cluster().counts["encoded"] == 1
    (after,) = engine.stories()
    assert after.id == before.id
    assert after.articles[1].title == edited.title


def test_a_duplicate_is_shown_with_its_article_and_counted_as_a_source(engine):
    body = "The harbour wall gave way before dawn and the lower town stood under water. " * 8
    first = storm(0, body=body)
    copy = hour(2, id="copy", source="Kestrel Herald", title="Flood in Kestrel Bay", body=body)
    engine.play([first, storm(1, "es", STORM_ES), copy])
    (story,) = engine.stories()
    assert story.size == 2
    assert story.sources == 3
    (found,) = [copy for article in story.articles for copy in article.duplicates]
    assert (found.guid, found.stage, found.score) == ("copy", "content", 1)
    assert engine.assignments()["Kestrel Herald", "copy"] == (story.id, "duplicate", None)


def test_versions_of_a_live_blog_are_one_article(engine):
    url = "https://news.example.org/live/ilva"
    blog = [
        hour(n, id="live", source="blog", url=url, title=STORM, body="Update. " * n)
        for n in (1, 2, 3)
    ]
    report = engine.ingest([*blog, storm(2, "es", STORM_ES)], first_seen=seen)
    assert report.counts["new"] == 2
    assert report.counts["changed"] == 2
    engine.cluster()
    (story,) = engine.stories()
    (article,) = [article for article in story.articles if article.guid == "live"]
    assert article.body == "Update. Update. Update. "


def test_ids_of_merged_stories_lead_to_the_survivor(engine):
    articles = [storm(n, title=f"{STORM}: {n} hours on") for n in range(6)]
    engine.play(articles)
    session = engine._database.session
    kept = next(iter(engine.stories())).id
    session.connection.execute(
        "INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id, merged_into) "
        "SELECT first_time, latest_time, 0, '{}', 0, headline_id, run_id, id FROM story"
    )
    assert engine.story(kept + 1).id == kept


def test_an_unknown_story_is_refused_by_its_id(engine):
    with pytest.raises(NotFoundError, match="no story 77"):
        engine.story(77)


def test_only_one_run_works_on_a_database(engine, dsn):
    with run_lock(dsn), pytest.raises(RunLocked, match="another run"):
        engine.ingest([storm(0)])
    assert engine.ingest([storm(0)]).counts["new"] == 1


def test_a_failing_run_is_recorded_as_failed(engine):
    def broken():
        yield storm(0)
        raise RuntimeError("the source broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        engine.ingest(broken())
    engine.ingest([storm(1)])
    outcomes = [run["outcome"] for run in engine.stats()["runs"]]
    assert outcomes == ["done"]

    def later():
        yield from (hour(0, id=str(n), title=f"{CHESS} {n}") for n in range(501))
        raise RuntimeError("the source broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        engine.ingest(later())
    assert [run["outcome"] for run in engine.stats()["runs"]] == ["failed", "done"]
    assert engine.stats()["totals"]["articles"] == 501


def test_the_end_of_a_gap_begins_another_story(engine):
    engine.play([storm(0), storm(1, "es", STORM_ES), storm(200), storm(201, "es", STORM_ES)])
    assert [story.size for story in engine.stories()] == [2, 2]


def test_stories_can_be_asked_for_by_time_and_size(engine):
    engine.play([storm(0), storm(1, "es", STORM_ES), storm(200), storm(201), storm(202)])
    middle = datetime(2026, 3, 6, tzinfo=UTC)
    assert [story.size for story in engine.stories(since=middle)] == [3]
    assert [story.size for story in engine.stories(until=middle)] == [2]
    assert [story.size for story in engine.stories(min_size=3)] == [3]
    assert [story.size for story in engine.stories(limit=1)] == [3]


def test_another_model_on_the_same_database_is_refused(engine, dsn, model_home):
    engine.play([storm(0)])
    other = Engine.open(dsn, home=model_home, model="bge-m3")
    wanted = "encoded with multilingual-e5-small .* `stories space backfill bge-m3`"
    with other, pytest.raises(ModelError, match=wanted):
        other.cluster()


def test_every_error_of_the_package_is_a_stories_error(dsn, model_home):
    engine = Engine.open(dsn, home=model_home, model="no such model")
    with engine, pytest.raises(StoriesError, match="no model is called"):
        engine.cluster()


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_clustering_without_encoding_stays_under_128_mib(dsn, model_home, engine):
    engine.play([storm(0)])
    _fill(engine, 6000)
    program = (
        "from clustering.cli.main import stories\n"
        f"stories.main(['cluster', '--database', {dsn!r}, '--home', {str(model_home)!r}], standalone_mode=False)\n"
        "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    report, peak = done.stdout.splitlines()[0], done.stdout.split("VmHWM:")[1]
    assert "matched" in report
    assert int(peak.split()[0]) / 1024 < 128


def _fill(engine, count):
    """Queue articles with random vectors, some of them alike, over two days."""
    session = engine._database.session
    vectors = session.part("article_vectors")
    session.connection.execute(
        "INSERT INTO article (feed_id, guid, title, body, language, language_confidence, event_time,"
        " first_seen, entry_hash, encode_due, run_id)"
        " SELECT 1, 'n' || n, 'n', '', 'en', 1, '2026-03-02'::timestamptz + n * interval '25 s', now(),"
        f" gen_random_uuid(), false, 1 FROM generate_series(1, {count}) n"
    )
    make_partitions(session, [datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)])
    session.connection.execute(
        f"INSERT INTO {vectors} SELECT a.id, a.event_time, 1, v.vector, v.vector FROM article a CROSS JOIN LATERAL"
        " (SELECT l2_normalize(array_agg(random() - 0.5 + sin(a.id % 900 + d))::vector(384))::halfvec AS vector"
        "  FROM generate_series(1, 384) d WHERE a.id > 0) v WHERE a.guid LIKE 'n%'"
    )
    session.connection.execute(
        "INSERT INTO story_article (article_id, event_time) SELECT id, event_time FROM article WHERE guid LIKE 'n%'"
    )


def test_a_report_that_recurs_every_morning_is_no_story_without_end(engine):
    morning = datetime(2026, 3, 1, 6, tzinfo=UTC)
    engine.play(
        Article(
            title=f"Gold price today: {1900 + 37 * day % 90} dollars an ounce",
            url=f"https://{site}.example.org/{day}",
            source=site,
            language="en",
            published_at=morning + timedelta(days=day, hours=late),
        )
        for day in range(20)
        for site, late in (("metals", 0), ("market", 1.5))
    )
    stories = list(engine.stories())
    assert sum(story.size for story in stories) == 40
    for story in stories:
        assert story.latest_time - story.first_time <= timedelta(hours=72 + 24)
