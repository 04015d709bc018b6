from __future__ import annotations

import multiprocessing
import subprocess
from contextlib import closing
from datetime import timedelta

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from worlds import World, turned

from clustering.errors import DatabaseError, PgvectorMissing, PgvectorTooOld
from clustering.events.linker import EventRules, Linker
from clustering.store import migrations as module
from clustering.store.database import Database, drop_database, make_database, scratch_database
from clustering.store.migrations import (
    Migration,
    migrate,
    migrations,
    pgvector_warning,
    schema_version,
)
from clustering.store.session import Session


@pytest.fixture
def empty(server, database_numbers):
    """Connection string of a database that was never migrated."""
    name = f"empty_{next(database_numbers)}"
    make_database(server.dsn("postgres"), name)
    yield server.dsn(name)
    drop_database(server.dsn("postgres"), name)


def schema(server, dsn) -> str:
    """The schema as the server's own pg_dump writes it."""
    dump = subprocess.run(
        [server._bin / "pg_dump", "--schema-only", "--no-owner", "--restrict-key=x", dsn],
        check=True,
        capture_output=True,
        text=True,
    )
    return dump.stdout


def test_an_empty_database_has_version_nought(empty):
    with closing(Session(empty)) as session:
        assert schema_version(session) == 0


def test_migrating_applies_every_step_once(empty):
    with closing(Session(empty)) as session:
        assert migrate(session) == list(migrations())
        assert schema_version(session) == len(migrations())
        assert migrate(session) == []
        rows = session.connection.execute("SELECT number, name FROM schema_migration").fetchall()
        assert [tuple(row) for row in rows] == [(step.number, step.name) for step in migrations()]


def test_a_migrated_schema_is_left_as_it_is(server, dsn):
    before = schema(server, dsn)
    with closing(Session(dsn)) as session:
        assert migrate(session) == []
    assert schema(server, dsn) == before


def test_a_fresh_schema_equals_the_sum_of_its_migrations(server, empty, dsn):
    """One database is migrated at once, the other a step at a time by sessions of their own."""
    for number in range(1, len(migrations()) + 1):
        with closing(Session(empty)) as session, pytest.MonkeyPatch.context() as patch:
            steps = migrations()[:number]
            patch.setattr(module, "migrations", lambda steps=steps: steps)
            assert migrate(session) == [steps[-1]]
    assert schema(server, empty) == schema(server, dsn)


def migrate_from_another_process(dsn: str, barrier) -> int:
    barrier.wait()
    with closing(Session(dsn)) as session:
        return len(migrate(session))


def test_processes_that_migrate_at_once_take_turns(empty):
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(4) as pool:
        barrier = manager.Barrier(4)
        applied = pool.starmap(migrate_from_another_process, [(empty, barrier)] * 4)
    assert sum(applied) == len(migrations())
    with closing(Session(empty)) as session:
        assert schema_version(session) == len(migrations())


def test_a_step_that_fails_leaves_nothing_and_can_be_run_again(empty, monkeypatch):
    broken = Migration(1, "broken", "CREATE TABLE half (x int); SELECT 1/0;")
    with closing(Session(empty)) as session:
        monkeypatch.setattr(module, "migrations", lambda: (broken,))
        with pytest.raises(Exception, match="division by zero"):
            migrate(session)
        assert session.connection.execute("SELECT to_regclass('half')").fetchone()[0] is None
        monkeypatch.undo()
        assert migrate(session) == list(migrations())


def test_a_newer_schema_is_refused(session):
    number = len(migrations()) + 1
    session.execute("record_migration", number=number, name="from_the_future")
    with pytest.raises(DatabaseError, match=f"schema {number}, .*upgrade story-clustering"):
        migrate(session)


def control_path(folder, version: str | None) -> str:
    """A folder where the server looks for extensions: with a pgvector of some version, or without."""
    extensions = folder / "extension"
    extensions.mkdir(parents=True)
    if version is not None:
        control = f"default_version = '{version}'\nmodule_pathname = 'vector'\n"
        (extensions / "vector.control").write_text(control)
    for path in (folder, extensions):
        path.chmod(0o755)
    return str(folder)


def looking_in(dsn: str, path: str) -> str:
    return make_conninfo(dsn, options=f"-c extension_control_path={path}")


def test_a_server_without_pgvector_is_refused(empty, homes):
    path = control_path(homes / "no_pgvector", None)
    with (
        closing(Session(looking_in(empty, path))) as session,
        pytest.raises(PgvectorMissing, match=r"no pgvector .*install it .*or leave --database out"),
    ):
        migrate(session)


def test_a_server_that_offers_an_old_pgvector_is_refused(empty, homes):
    path = control_path(homes / "old_pgvector", "0.7.4")
    with (
        closing(Session(looking_in(empty, path))) as session,
        pytest.raises(PgvectorTooOld, match=r"pgvector is 0\.7\.4, 0\.8\.0 or newer is needed"),
    ):
        migrate(session)


def test_a_server_that_has_none_changes_nothing(server, empty, homes):
    before = schema(server, empty)
    path = control_path(homes / "no_pgvector_again", None)
    with closing(Session(looking_in(empty, path))) as session, pytest.raises(PgvectorMissing):
        migrate(session)
    assert schema(server, empty) == before


def say_installed(session, version: str) -> None:
    session.connection.execute(
        "UPDATE pg_extension SET extversion = %s WHERE extname = 'vector'", [version]
    )


@pytest.mark.parametrize("version", ["0.7.4", "0.5.1", "0.6"])
def test_an_old_pgvector_installed_is_refused_whatever_is_offered(empty, version):
    with closing(Session(empty)) as session:
        session.execute("create_pgvector")
        say_installed(session, version)
        with pytest.raises(PgvectorTooOld, match="ALTER EXTENSION vector UPDATE"):
            migrate(session)


@pytest.mark.parametrize("version", ["0.8.0", "0.8.3", "0.8.4", "0.10.0", "1.0"])
def test_a_pgvector_with_index_faults_is_warned_about(session, version):
    say_installed(session, version)
    warning = pgvector_warning(session)
    if version in {"0.8.0", "0.8.3"}:
        assert warning is not None
        assert version in warning
    else:
        assert warning is None


def test_a_database_opened_is_migrated_and_warns(empty, homes):
    with closing(Session(empty)) as session:
        session.execute("create_pgvector")
        say_installed(session, "0.8.1")
    warnings: list[str] = []
    database = Database(empty, homes / "unused", warnings.append)
    assert schema_version(database.session) == len(migrations())
    assert database.dsn == empty
    database.close()
    assert database.session.connection.closed
    assert len(warnings) == 1
    assert not (homes / "unused").exists()


def test_a_database_that_cannot_be_used_leaves_no_connection(dsn, session):
    session.execute("record_migration", number=99, name="from_the_future")
    with pytest.raises(DatabaseError, match="schema 99"):
        Database(dsn, None, print)
    users = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    for _ in range(50):
        if session.connection.execute(users).fetchone()[0] == 1:
            break
    assert session.connection.execute(users).fetchone()[0] == 1


def test_making_a_database_twice_is_making_it_once(server, database_numbers):
    name = f'odd "name" {next(database_numbers)}'
    for _ in range(2):
        make_database(server.dsn("postgres"), name)
    with closing(Session(server.dsn(name))) as session:
        assert session.connection.execute("SELECT current_database()").fetchone()[0] == name
    drop_database(server.dsn("postgres"), name)
    drop_database(server.dsn("postgres"), name)
    with closing(Session(server.dsn("postgres"))) as session:
        assert session.value("has_database", name=name) is False


def make_from_another_process(dsn: str, name: str, barrier) -> None:
    barrier.wait()
    make_database(dsn, name)


def test_processes_may_make_a_database_at_once(server, database_numbers):
    name = f"raced_{next(database_numbers)}"
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(3) as pool:
        barrier = manager.Barrier(3)
        pool.starmap(make_from_another_process, [(server.dsn("postgres"), name, barrier)] * 3)
    drop_database(server.dsn("postgres"), name)


def test_a_role_that_may_not_make_databases_is_told(server, session):
    session.connection.execute("CREATE ROLE modest LOGIN")
    try:
        with pytest.raises(DatabaseError, match="permission denied to create database"):
            make_database(make_conninfo(server.dsn("postgres"), user="modest"), "refused")
    finally:
        session.connection.execute("DROP ROLE modest")


def test_a_scratch_database_is_gone_afterwards(dsn, homes, session):
    with scratch_database(dsn, homes / "unused") as beside:
        with closing(Session(beside)) as scratch:
            name = scratch.connection.info.dbname
            assert schema_version(scratch) == 0
        left_open = Session(beside)
    assert session.value("has_database", name=name) is False
    left_open.close()


def test_scratch_databases_of_one_process_do_not_meet(dsn, homes):
    with scratch_database(dsn, homes / "unused") as one, scratch_database(dsn, homes) as other:
        assert one != other


def test_the_template_has_no_articles(session):
    counts = session.rows("totals")[0]
    assert set(counts) == {0}
    names = sql.SQL("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
    assert session.connection.execute(names).fetchone()[0] == 1


def old_story(world, members):
    """A story as an engine of before events left it; today's passes need today's tables."""
    story_id = world.one(
        "INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id) "
        "SELECT min(event_time), max(event_time), 2, '{en}', 1, %s, %s FROM article WHERE id = ANY (%s) RETURNING id",
        members[0],
        world.run_id(),
        members,
    )
    world.sql(
        "UPDATE story_article SET story_id = %s, placed_in = %s, pass = 'discover', score = 1, threshold = 1 "
        "WHERE article_id = ANY (%s)",
        story_id,
        story_id,
        members,
    )
    world.session.execute("refresh_centroids", story_ids=[story_id], members=10)
    return story_id


def test_stories_from_before_events_are_linked_after_the_upgrade(empty, monkeypatch):
    """A database with stories gets events at its next run, as if they had been there from the start."""
    before = [step for step in migrations() if step.name != "events" and step.number < 8]
    with closing(Session(empty)) as session:
        monkeypatch.setattr(module, "migrations", lambda: tuple(before))
        migrate(session)
        world = World(session)
        days = [[world.add(turned(30 * day), 72 * day + hour) for hour in (0, 1)] for day in (0, 1)]
        told = [old_story(world, members) for members in days]
        monkeypatch.undo()
        assert [step.number for step in migrate(session)][:1] == [8]
        rules = EventRules(0.6, timedelta(days=7), 0, 10)
        assert Linker(session, rules, world.run_id()).run() == {"events": 1, "linked": 2}
        assert sorted(world.sql("SELECT story_id FROM event_story")) == [(one,) for one in told]
        world.check()
