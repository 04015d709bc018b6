from __future__ import annotations

import socket
import threading
import time
from contextlib import closing
from datetime import UTC, datetime
from typing import NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from clustering.errors import DatabaseError, DatabaseUnreachable, ServerFull
from clustering.store.session import Session, translated_errors

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def one_line(error: BaseException) -> str:
    message = str(error)
    assert message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "given",
    [{}, {"command": "x"}, {"command": "x", "started_at": NOON, "settings": "{}", "more": 1}],
)
def test_parameters_are_checked_before_anything_is_sent(session, given):
    with pytest.raises(TypeError, match=r"start_run takes .*'command', 'settings', 'started_at'"):
        session.execute("start_run", **given)


def test_an_unknown_statement_is_a_mistake_of_the_program(session):
    with pytest.raises(KeyError, match="no_such_statement"):
        session.rows("no_such_statement")


def test_a_part_that_nobody_bound_is_named(session):
    with pytest.raises(KeyError, match="story_vectors"):
        session.rows("live_stories", since=NOON)


def test_parts_are_bound_and_read(session):
    session.bind(story_vectors="some_table")
    assert session.part("story_vectors") == "some_table"
    with pytest.raises(psycopg.errors.UndefinedTable, match="some_table"):
        session.rows("live_stories", since=NOON)


def test_execute_tells_how_many_rows(session):
    assert session.execute("add_feeds", addresses=["a", "b", "b"]) == 2
    assert session.execute("add_feeds", addresses=["a", "b", "c"]) == 1


def test_rows_are_named_tuples_and_value_is_the_first_column(session):
    session.execute("add_feeds", addresses=["a"])
    (row,) = session.rows("feed_ids", addresses=["a", "b"])
    assert (row.address, row.id) == ("a", 1)
    assert session.value("feed_ids", addresses=["a"]) == "a"
    assert session.value("feed_ids", addresses=["b"]) is None


class FeedId(NamedTuple):
    address: str
    id: int


def test_records_have_the_columns_as_fields(session):
    session.execute("add_feeds", addresses=["a"])
    assert session.records(FeedId, "feed_ids", addresses=["a"]) == [FeedId("a", 1)]


def test_settings_last_as_long_as_their_transaction(session):
    def shown(name):
        return session.connection.execute(f"SHOW {name}").fetchone()[0]

    before = shown("work_mem")
    with session.transaction(work_mem="77MB", lock_timeout="5s"):
        assert (shown("work_mem"), shown("lock_timeout")) == ("77MB", "5s")
        with session.transaction(work_mem="78MB"):
            assert shown("work_mem") == "78MB"
    assert (shown("work_mem"), shown("lock_timeout")) == (before, "0")


def test_a_double_underscore_is_a_dot(session):
    with session.transaction(stories__colour="green"):
        shown = session.connection.execute("SELECT current_setting('stories.colour')").fetchone()
    assert shown[0] == "green"


def test_a_transaction_whose_block_fails_is_rolled_back_with_its_settings(session):

    def fail():
        with session.transaction(work_mem="77MB"):
            session.execute("add_feeds", addresses=["a"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert session.rows("feed_ids", addresses=["a"]) == []
    assert session.connection.execute("SHOW work_mem").fetchone()[0] != "77MB"
    assert session.connection.info.transaction_status.name == "IDLE"


def test_nothing_is_prepared_on_the_server(session):
    for _ in range(20):
        session.rows("feed_ids", addresses=["a"])
    found = session.connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone()
    assert found[0] == 0


def test_times_come_as_utc_in_any_zone(session):
    session.connection.execute("SET timezone = 'America/St_Johns'")
    session.connection.execute("INSERT INTO feed (address) VALUES ('a')")
    moment = session.connection.execute("SELECT timestamptz '2026-03-01 12:00+00'").fetchone()[0]
    assert moment == NOON
    assert moment.tzinfo is UTC


def test_copy_writes_rows_and_counts_them(session):
    session.connection.execute("CREATE TABLE copied (article_id bigint, event_time timestamptz, "
                               "revision int, raw real, aligned real)")  # fmt: skip
    session.bind(article_vectors="copied")
    rows = ((number, NOON, 1, 0.5, 0.5) for number in range(3))
    types = ("int8", "timestamptz", "int4", "float4", "float4")
    assert session.copy("copy_vectors", types, rows) == 3
    assert session.connection.execute("SELECT count(*) FROM copied").fetchone()[0] == 3


def test_the_database_sees_whose_connection_it_is(session):
    shown = session.connection.execute("SHOW application_name").fetchone()[0]
    assert shown == "story-clustering"


@pytest.mark.parametrize(
    "dsn",
    [
        "nonsense",
        "dbname='unclosed",
        "no_such_option=1",
        "postgresql://host/database?no_such_option=1",
        "postgresql://host/%zz",
        "postgresql://[::1/database",
        "host=/tmp port=many",
    ],
)
def test_a_dsn_that_cannot_be_read_is_refused_in_one_line(dsn):
    with pytest.raises(DatabaseUnreachable) as caught:
        Session(dsn)
    assert "DSN" in one_line(caught.value) or "--database" in one_line(caught.value)


def test_nobody_listening_is_said_at_once(tmp_path):
    with closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        start = time.monotonic()
        with pytest.raises(DatabaseUnreachable, match="check --database") as caught:
            Session(f"host=127.0.0.1 port={port} user=x dbname=x")
        assert time.monotonic() - start < 5
    assert str(port) in one_line(caught.value)
    with pytest.raises(DatabaseUnreachable, match="No such file"):
        Session(make_conninfo(host=str(tmp_path), dbname="x"))


def test_something_else_that_listens_is_no_server():
    """It takes the connection and closes it without a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(5)
        closer = threading.Thread(target=lambda: listener.accept()[0].close())  # noqa: PLW0108 - the inner call must wait for the connection
        closer.start()
        with pytest.raises(DatabaseUnreachable) as caught:
            Session(f"host=127.0.0.1 port={port} user=x dbname=x sslmode=disable")
        closer.join()
    one_line(caught.value)


def test_a_missing_database_is_named(server):
    with pytest.raises(DatabaseUnreachable, match='"no_such_database" does not exist') as caught:
        Session(server.dsn("no_such_database"))
    one_line(caught.value)


def test_a_missing_role_is_named(dsn):
    with pytest.raises(DatabaseUnreachable, match='"nobody_here" does not exist') as caught:
        Session(make_conninfo(dsn, user="nobody_here"))
    one_line(caught.value)


@pytest.fixture
def guarded_role(server, session):
    """A role that must log in with a password, which the server's own file demands."""
    session.connection.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    rules = server.data / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all guarded scram-sha-256\n" + before)
    session.connection.execute("SELECT pg_reload_conf()")
    time.sleep(0.2)
    yield "guarded"
    rules.write_text(before)
    session.connection.execute("SELECT pg_reload_conf()")
    session.connection.execute("DROP OWNED BY guarded; DROP ROLE guarded")


def test_a_wrong_password_is_refused_and_not_repeated(dsn, guarded_role):
    with pytest.raises(DatabaseUnreachable, match="password authentication failed") as caught:
        Session(make_conninfo(dsn, user=guarded_role, password="wr0ng-secret"))
    assert "wr0ng-secret" not in one_line(caught.value)
    with closing(Session(make_conninfo(dsn, user=guarded_role, password="right"))) as opened:
        assert opened.value("has_migration_table")


def test_what_a_role_may_not_do_is_said(dsn, guarded_role):
    with (
        closing(Session(make_conninfo(dsn, user=guarded_role, password="right"))) as opened,
        pytest.raises(DatabaseError, match=r"permission denied .*grant it") as caught,
    ):
        opened.rows("feed_ids", addresses=["a"])
    assert not isinstance(caught.value, DatabaseUnreachable)
    one_line(caught.value)


def test_a_read_only_server_is_said(dsn):
    with (
        closing(
            Session(make_conninfo(dsn, options="-c default_transaction_read_only=on"))
        ) as opened,
        pytest.raises(DatabaseError, match="read-only") as caught,
    ):
        opened.execute("add_feeds", addresses=["a"])
    one_line(caught.value)


def test_a_connection_that_breaks_is_said(dsn, session):
    with closing(Session(dsn)) as victim:
        pid = victim.connection.info.backend_pid
        session.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        with pytest.raises(DatabaseUnreachable) as caught:
            victim.rows("feed_ids", addresses=["a"])
    one_line(caught.value)


def test_a_server_out_of_memory_is_full(session):
    with pytest.raises(ServerFull, match="out of space") as caught, translated_errors():
        session.connection.execute("DO $$ BEGIN RAISE SQLSTATE '53200'; END $$")
    one_line(caught.value)


def test_defects_of_the_program_are_not_dressed_up(session):
    with pytest.raises(psycopg.errors.UndefinedTable), translated_errors():
        session.connection.execute("SELECT FROM no_such_table")
    with pytest.raises(ValueError, match="own"), translated_errors():
        raise ValueError("own")
