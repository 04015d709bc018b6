"""Commands that only read work on a real streaming replica, and those that write say why they do not."""

from __future__ import annotations

import pytest
from command_line import CommandLine
from replicas import caught_up, replica

from clustering.engine import Engine
from clustering.errors import DatabaseError
from clustering.settings import Settings
from clustering.store.embedded import EmbeddedServer


@pytest.fixture(scope="module")
def followed(homes, model_home, sample_articles):
    """A server with some stories, and the connection string of a replica that has caught up."""
    primary = EmbeddedServer(homes / "primary")
    primary.start()
    dsn = primary.dsn("postgres")
    with Engine.open(dsn, home=model_home) as engine:
        engine.play(sample_articles[:40])
    with replica(primary, homes / "following", "postgres") as copy:
        caught_up(dsn, copy)
        yield dsn, copy
    primary.close()


@pytest.fixture
def commands(followed, model_home):
    """Runs `stories` with the primary as its database."""
    return CommandLine(followed[0], model_home)


@pytest.mark.parametrize(
    "words",
    [
        ("list", "--json"),
        ("show", "1", "--json"),
        ("why", "1", "--json"),
        ("events", "--json"),
        ("stats", "--json"),
        ("duplicates", "list", "--json"),
        ("review", "list", "--json"),
        ("tasks", "list", "--json"),
        ("feeds", "list", "--json"),
        ("tail", "--after", "0", "--no-follow"),
    ],
    ids=lambda words: words[0],
)
def test_a_replica_says_what_its_primary_says(commands, followed, words):
    own = commands(*words)
    assert own.status == 0, own.err
    copied = commands(*words, "--read-from", followed[1])
    assert copied.status == 0, copied.err
    assert copied.out == own.out


def test_an_export_from_a_replica_is_that_of_its_primary(commands, followed, tmp_path):
    names = [tmp_path / "one.jsonl", tmp_path / "other.jsonl"]
    assert commands("export", "--out", names[0]).status == 0
    done = commands("export", "--out", names[1], env={"STORIES_READ_FROM": followed[1]})
    assert done.status == 0, done.err
    assert names[0].read_bytes() == names[1].read_bytes()


def test_the_spaces_of_a_replica_are_listed(commands, followed):
    found = commands("space", "list", "--json", "--read-from", followed[1])
    assert found.status == 0, found.err
    assert found.document[0]["articles"] > 20


def test_a_follower_of_a_replica_asks_and_says_so(followed, model_home):
    told = []
    settings = Settings(database=followed[1], home=model_home, read_only=True)
    with Engine.open(settings=settings) as engine:
        changes = engine.subscribe(0, poll_seconds=0.1, warn=told.append)
        assert next(changes).id
        for change in changes:
            if change.change == max(c.change for c in engine.changes()):
                break
    assert not told or "replica" in told[0]


def test_writing_to_a_replica_is_refused_with_the_reason(commands, followed):
    done = commands("undo", "1", "--database", followed[1])
    assert done.status == 1
    assert "read-only" in done.err


def test_a_replica_with_an_older_schema_is_refused(session, dsn, model_home):
    session.connection.execute(
        "DELETE FROM schema_migration WHERE number = (SELECT max(number) FROM schema_migration)"
    )
    settings = Settings(database=dsn, home=model_home, read_only=True)
    with pytest.raises(DatabaseError, match="run `stories init` on the one that it follows"):
        Engine.open(settings=settings)
    assert session.value("last_migration") == 9
