"""Several workers at once, in processes of their own; one of them is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from datetime import timedelta
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from clustering.errors import DatabaseUnreachable, LeaseLost
from clustering.store.session import Session
from clustering.tasks.leases import Wanted, complete, lease_tasks

if TYPE_CHECKING:
    from told import Told

WORKERS = 4
STORIES = 120


def work(dsn: str, barrier, limit: int) -> list[tuple[int, int]]:
    """Take tasks until there are none; returns what was done, with how many came at once."""
    done = []
    with closing(Session(dsn)) as session:
        barrier.wait(60)
        while found := lease_tasks(session, "score", Wanted(limit)):
            for lease in found:
                complete(session, lease, {"score": os.getpid()})
                done.append((lease.story_id, len(found)))
    return done


@pytest.mark.parametrize("limit", [1, 7, STORIES])
def test_each_story_goes_to_one_worker(told, limit):
    stories = [told.story(number / 10) for number in range(STORIES)]
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(WORKERS) as pool:
        barrier = manager.Barrier(WORKERS)
        done = pool.starmap(work, [(told.session.dsn, barrier, limit)] * WORKERS)
    handed = Counter(story for part in done for story, _ in part)
    assert handed == Counter(stories)
    assert told.one("SELECT count(*) FROM task WHERE state = 'done' AND attempts = 0") == STORIES


def test_a_worker_is_handed_other_stories_while_one_holds_rows(told):
    """SKIP LOCKED: a transaction that handed out the latest story is still open."""
    first, second = told.story(1), told.story(0)
    told.sql("INSERT INTO task (name, story_id) VALUES ('score', %s), ('score', %s)", first, second)
    with closing(Session(told.session.dsn)) as slow, slow.transaction():
        (held,) = lease_tasks(slow, "score", Wanted(1))
        with told.session.transaction(lock_timeout="500ms"):
            (other,) = lease_tasks(told.session, "score", Wanted(2))
        assert (held.story_id, other.story_id) == (first, second)


def test_workers_do_their_work_while_stories_grow(told):
    """Every story is done as it stands in the end, however often it changed under a worker's hands."""
    stories = [told.story(0, size=2) for _ in range(12)]
    stop = False

    def grow() -> None:
        with closing(Session(told.session.dsn)) as session:
            for size in (4, 8, 16, 32):
                for story in stories:
                    session.connection.execute(
                        "UPDATE story SET size = %s WHERE id = %s", [size, story]
                    )

    def scorer() -> None:
        with closing(Session(told.session.dsn)) as session:
            while True:
                finish = stop
                found = lease_tasks(session, "score", Wanted(3))
                for lease in found:
                    complete(session, lease, {"score": 1})
                if finish and not found:
                    return

    workers = [Thread(target=scorer) for _ in range(3)]
    for worker in workers:
        worker.start()
    grow()
    stop = True
    for worker in workers:
        worker.join(60)
    assert told.sql("SELECT DISTINCT state, (done_as).size FROM task") == [("done", 32)]


_WORKER = """
import sys, time
from clustering.store.session import Session
from clustering.tasks.leases import Wanted, lease_tasks
from datetime import timedelta
found = lease_tasks(Session(sys.argv[1]), "score", Wanted(lease=timedelta(seconds=1)))
print(*(lease.story_id for lease in found), flush=True)
time.sleep(600)
"""


def test_the_tasks_of_a_killed_worker_are_taken_over_when_its_leases_run_out(told):
    stories = {told.story(number) for number in range(3)}
    command = [sys.executable, "-c", _WORKER, told.session.dsn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        held = {int(word) for word in worker.stdout.readline().split()}
        worker.send_signal(signal.SIGKILL)
    assert held == stories
    deadline = time.monotonic() + 30
    found = []
    while not found and time.monotonic() < deadline:
        found = lease_tasks(told.session, "score", Wanted())
        time.sleep(0.05)
    assert {lease.story_id for lease in found} == stories
    assert {lease.attempts for lease in found} == {1}


def complete_and_die(victim: Session, lease, told: Told) -> None:
    with victim.transaction():
        complete(victim, lease, {"score": 1})
        told.sql("SELECT pg_terminate_backend(%s)", victim.connection.info.backend_pid)


def test_a_worker_killed_in_the_middle_of_completing_leaves_nothing_half_done(told):
    told.story()
    (lease,) = lease_tasks(told.session, "score", Wanted())
    victim = Session(told.session.dsn)
    with pytest.raises(DatabaseUnreachable):
        complete_and_die(victim, lease, told)
    victim.close()
    assert told.sql("SELECT * FROM story_score") == []
    told.pass_time(timedelta(days=1))
    (again,) = lease_tasks(told.session, "score", Wanted())
    complete(told.session, again, {"score": 2})
    with pytest.raises(LeaseLost):
        complete(told.session, lease, {"score": 1})
    assert told.one("SELECT value FROM story_score") == 2
