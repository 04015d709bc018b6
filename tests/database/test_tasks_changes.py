"""Word of changed stories: what is told, in which order, on a direct connection and behind a pooler."""

from __future__ import annotations

import time
from contextlib import closing
from queue import Empty, SimpleQueue
from threading import Thread

import psycopg
import pytest
from poolers import pooled
from worlds import turned

from clustering.errors import DatabaseUnreachable
from clustering.store.session import Session
from clustering.tasks import changes as module
from clustering.tasks.changes import changes_after, deafness, follow, latest_change
from clustering.tasks.leases import Wanted, complete, lease_tasks


def heard(told, after=0):
    return [(change.kind, change.id) for change in changes_after(told.session, after)]


def test_stories_are_told_in_the_order_of_their_last_change(told):
    one, two, three = (told.story(hours) for hours in (5, 1, 3))
    told.change(two, size=9)
    assert heard(told) == [("new", one), ("new", three), ("new", two)]
    assert latest_change(told.session) == [c.change for c in changes_after(told.session, 0)][-1]


def test_whoever_begins_after_a_change_is_told_what_came_since(told):
    one, two = told.story(0), told.story(1, languages=("en", "es"))
    known = latest_change(told.session)
    assert heard(told, known) == []
    three = told.story(2)
    told.change(one, size=7)
    told.merge(two, three)
    found = list(changes_after(told.session, known))
    assert [(c.kind, c.id, c.merged_into) for c in found] == [
        ("new", three, None),
        ("changed", one, None),
        ("merged", two, three),
    ]
    assert found[1].size == 7
    assert (found[2].headline, found[2].languages, found[2].sources) == ("Title", ["en", "es"], 1)


def test_every_column_that_is_seen_counts_and_a_write_of_the_same_does_not(told):
    told.article()
    story = told.story(4)
    for columns in (
        {"size": 3},
        {"languages": ["fr"]},
        {"sources": 8},
        {"headline_id": 1},
        {"first_time": "2026-02-01Z"},
        {"latest_time": "2026-03-09Z"},
    ):
        known = latest_change(told.session)
        told.change(story, **columns)
        assert heard(told, known) == [("changed", story)], columns
        told.change(story, **columns)
        assert latest_change(told.session) == known + 1


def test_long_lists_come_in_pages_and_each_story_once(told, monkeypatch):
    monkeypatch.setattr(module, "_PAGE", 3)
    stories = [told.story(number) for number in range(8)]
    told.change(stories[0], size=5)
    assert heard(told) == [("new", story) for story in [*stories[1:], stories[0]]]


def test_a_story_that_changes_while_it_is_told_comes_again_and_is_new_once(told, monkeypatch):
    monkeypatch.setattr(module, "_PAGE", 1)
    one, two = told.story(0), told.story(1)
    found = []
    for change in changes_after(told.session, 0):
        found.append((change.kind, change.id))
        if change.id == two and change.kind == "new":
            told.change(one, size=9)
    assert found == [("new", one), ("new", two), ("changed", one)]


def test_without_stories_nothing_changed(told):
    assert latest_change(told.session) == 0
    assert heard(told) == []


def test_the_passes_tell_of_their_stories(world):
    """Real placements: a story made and filled in one slice is one change, a second article another."""
    world.add(turned(0), 0)
    world.add(turned(3), 0)
    world.cluster()
    (made,) = changes_after(world.session, 0)
    assert (made.kind, made.size, made.languages) == ("new", 2, ["en"])
    world.add(turned(1), 2, language="es")
    world.cluster()
    (grown,) = changes_after(world.session, made.change)
    assert (grown.kind, grown.id, grown.size) == ("changed", made.id, 3)
    assert grown.languages == ["en", "es"]
    before = world.snapshot()
    world.cluster()
    assert world.snapshot() == before
    assert list(changes_after(world.session, grown.change)) == []


class Listener:
    """Follows in a thread of its own."""

    def __init__(self, dsn: str, after: int, poll_seconds: float = 3600) -> None:
        self.told: SimpleQueue = SimpleQueue()
        self.warnings: list[str] = []
        self.session = Session(dsn)
        found = follow(self.session, after, poll_seconds, self.warnings.append)
        self.thread = Thread(target=self._run, args=(found,), daemon=True)
        self.thread.start()

    def _run(self, found) -> None:
        try:
            for change in found:
                self.told.put((change.kind, change.id))
        except DatabaseUnreachable as error:
            self.told.put(error)

    def next(self, seconds: float = 20):
        return self.told.get(timeout=seconds)


def cut_off(told, session: Session, listener: Listener) -> None:
    """End every other connection to the database, so that the listener's thread ends."""
    told.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    ended(session, listener)


def ended(session: Session, listener: Listener) -> None:
    listener.thread.join(20)
    assert not listener.thread.is_alive()
    session.close()


def test_a_direct_connection_is_told_at_once(told):
    first = told.story(0)
    listener = Listener(told.session.dsn, 0)
    assert listener.next() == ("new", first)
    time.sleep(0.5)
    with closing(Session(told.session.dsn)) as run:
        with run.transaction():
            run.connection.execute("UPDATE story SET size = 9")
            time.sleep(0.3)
            assert listener.told.empty(), "told before it was committed"
        committed = time.perf_counter()
        assert listener.next() == ("changed", first)
        assert time.perf_counter() - committed < 5
    assert listener.warnings == []
    cut_off(told, listener.session, listener)
    assert isinstance(listener.next(), DatabaseUnreachable)


def test_what_is_done_to_tasks_is_no_change_of_a_story(told):
    told.story()
    listener = Listener(told.session.dsn, latest_change(told.session))
    time.sleep(0.5)
    (lease,) = lease_tasks(told.session, "score", Wanted())
    complete(told.session, lease, {"score": 1})
    with pytest.raises(Empty):
        listener.next(0.5)
    cut_off(told, listener.session, listener)


def test_behind_a_pooler_it_asks_and_says_so(told, homes):
    folder = homes / "pooler"
    folder.mkdir()
    with pooled(told.session.dsn, folder) as dsn:
        with closing(Session(dsn)) as session:
            assert deafness(session) == "a pooler stands before the database"
        assert deafness(told.session) is None
        listener = Listener(dsn, 0, poll_seconds=0.2)
        time.sleep(0.5)
        story = told.story()
        assert listener.next() == ("new", story)
        told.change(story, size=8)
        assert listener.next() == ("changed", story)
        assert listener.warnings == [
            "a pooler stands before the database: asking every 0.2 s for changes"
        ]
    # The pooler is gone; it would not tell its clients of a server's connection that died idle.
    ended(listener.session, listener)


def test_listening_behind_a_pooler_is_never_told(told, homes):
    """Why it asks: LISTEN succeeds there, and the word goes to nobody."""
    folder = homes / "pooler_listen"
    folder.mkdir()
    with (
        pooled(told.session.dsn, folder) as dsn,
        psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as listening,
    ):
        listening.execute("LISTEN story_change")
        told.story()
        assert list(listening.notifies(timeout=1)) == []


def test_tasks_work_behind_a_pooler(told, homes):
    folder = homes / "pooler_tasks"
    folder.mkdir()
    story = told.story()
    with pooled(told.session.dsn, folder) as dsn, closing(Session(dsn)) as session:
        (lease,) = lease_tasks(session, "score", Wanted())
        complete(session, lease, {"score": 1})
    assert told.sql("SELECT story_id, state FROM task") == [(story, "done")]
