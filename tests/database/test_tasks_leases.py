"""Tasks from hand to hand: leases, results, failures, changed and merged stories, scores."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from clustering.errors import LeaseLost
from clustering.store.session import Session
from clustering.stories.reading import list_stories
from clustering.tasks.leases import (
    Wanted,
    complete,
    fail,
    give_back,
    lease_tasks,
    list_tasks,
    results_of_absorbed,
    retry,
    scores,
)

MINUTE = timedelta(minutes=1)


def leased(told, name="score", **wanted):
    return lease_tasks(told.session, name, Wanted(**wanted))


def ids(leases):
    return sorted(lease.story_id for lease in leases)


def do(told, story=None, name="score", **result):
    """Do what waits, of one story or all."""
    for lease in leased(told, name):
        if story in (None, lease.story_id):
            complete(told.session, lease, result)
        else:
            give_back(told.session, lease)


def test_without_stories_nothing_is_pending(told):
    assert leased(told) == []


def test_the_latest_stories_are_handed_out_once(told):
    old, new, newer = told.story(0), told.story(1), told.story(2)
    assert ids(leased(told, limit=2)) == [new, newer]
    assert ids(leased(told, limit=2)) == [old]
    assert leased(told) == []


def test_what_a_worker_asks_for(told):
    small, large = told.story(0), told.story(0, size=5)
    spanish = told.story(1, size=3, languages=("en", "es"))
    week_old, before = told.story(-24 * 7 + 1, size=9), told.story(-24 * 7 + 0.9, size=9)
    assert ids(leased(told, "a", min_size=3)) == [large, spanish, week_old]
    assert ids(leased(told, "b", languages=["es", "fr"])) == [spanish]
    assert ids(leased(told, "c")) == [small, large, spanish, week_old]
    since = told.one("SELECT latest_time FROM story WHERE id = %s", before)
    assert ids(leased(told, "d", since=since)) == [small, large, spanish, week_old, before]
    assert leased(told, "e", limit=0) == []


def test_each_task_has_a_state_of_its_own(told):
    story = told.story()
    (lease,) = leased(told, "translate")
    fail(told.session, lease, "no answer", permanent=True)
    assert ids(leased(told, "score")) == [story]
    assert leased(told, "translate") == []


def test_a_name_that_cannot_be_one_is_refused(told):
    told.story()
    with pytest.raises(ValueError, match="no name of a task"):
        leased(told, "Score this")
    assert told.sql("SELECT * FROM task") == []


@pytest.mark.parametrize("seconds", [-1, 0, 0.9])
def test_a_lease_that_is_over_at_once_is_refused(told, seconds):
    told.story()
    with pytest.raises(ValueError, match="ask for more"):
        leased(told, lease=timedelta(seconds=seconds))
    assert len(leased(told, lease=timedelta(seconds=1))) == 1


def test_a_done_story_does_not_wait_and_keeps_its_result(told):
    story = told.story()
    do(told, score=3.5, why=["a", {"b": None}])
    assert leased(told) == []
    told.pass_time(timedelta(days=400))
    assert leased(told) == []
    (task,) = list_tasks(told.session, "score", None, 9)
    assert (task.story_id, task.state, task.attempts) == (story, "done", 0)
    assert task.result == {"score": 3.5, "why": ["a", {"b": None}]}
    assert isinstance(task.done_at, datetime)


def test_a_lease_that_ran_out_is_taken_over_and_the_first_worker_told(told):
    told.story()
    (first,) = leased(told, lease=10 * MINUTE)
    told.pass_time(9.9 * MINUTE)
    assert leased(told) == []
    told.pass_time(0.2 * MINUTE)
    (second,) = leased(told)
    assert second.attempts == 1
    with pytest.raises(LeaseLost, match="task score of story 1 is no longer this worker's"):
        complete(told.session, first, {"score": 1})
    with pytest.raises(LeaseLost):
        fail(told.session, first, "late", permanent=True)
    give_back(told.session, first)
    assert scores(told.session, [1]) == {1: {}}
    complete(told.session, second, {"score": 2})
    assert scores(told.session, [1]) == {1: {"score": 2.0}}


def test_a_late_worker_may_finish_where_nobody_took_over(told):
    told.story()
    (lease,) = leased(told)
    told.pass_time(timedelta(days=1))
    complete(told.session, lease, {"score": 1})
    with pytest.raises(LeaseLost, match="completed before"):
        complete(told.session, lease, {"score": 2})


def test_a_forged_token_changes_nothing(told):
    told.story()
    (lease,) = leased(told)
    before = told.rows()
    for false in (replace(lease, token=uuid4()), replace(lease, task="other")):
        with pytest.raises(LeaseLost):
            complete(told.session, false, {"score": 1})
        with pytest.raises(LeaseLost):
            fail(told.session, false, "x")
    assert told.rows() == before


def test_failures_wait_longer_each_time(told):
    told.story()
    for attempts, wait in enumerate((1, 2, 4, 8)):
        (lease,) = leased(told)
        assert lease.attempts == attempts
        fail(told.session, lease, TimeoutError("after 30 s"))
        told.pass_time((wait - 0.1) * MINUTE)
        assert leased(told) == []
        told.pass_time(0.1 * MINUTE)
    (task,) = list_tasks(told.session, None, "waiting", 9)
    assert (task.attempts, task.error) == (4, "TimeoutError: after 30 s")
    do(told, score=1)
    (task,) = list_tasks(told.session, None, None, 9)
    assert (task.state, task.attempts, task.error) == ("done", 0, None)


def test_a_worker_that_dies_again_and_again_is_counted(told):
    told.story()
    for attempts in range(3):
        (lease,) = leased(told, lease=MINUTE)
        assert lease.attempts == attempts
        told.pass_time(MINUTE)
    (task,) = list_tasks(told.session, "score", "leased", 9)
    assert task.error == "its worker let the lease run out"


def test_a_permanent_failure_is_handed_out_only_after_retry(told):
    one, other = told.story(0), told.story(1)
    for lease in leased(told):
        fail(told.session, lease, "refused", permanent=True)
    told.pass_time(timedelta(days=400))
    told.change(one, size=200, languages=["en", "fr"])
    assert leased(told) == []
    assert retry(told.session, "translate") == 0
    assert retry(told.session, "score", [one]) == 1
    assert ids(leased(told)) == [one]
    assert retry(told.session, "score") == 1
    (lease,) = leased(told)
    assert (lease.story_id, lease.attempts) == (other, 0)


def test_retry_reaches_what_waits_after_a_failure_and_nothing_else(told):
    backing_off, done, in_hand = told.story(0), told.story(1), told.story(2)
    for lease in leased(told):
        if lease.story_id == backing_off:
            fail(told.session, lease, "no answer")
        elif lease.story_id == done:
            complete(told.session, lease, {})
    assert retry(told.session, "score", [backing_off, done, in_hand]) == 1
    assert ids(leased(told)) == [backing_off]


def test_retry_by_the_id_of_an_absorbed_story_reaches_its_survivor(told):
    absorbed, survivor = told.story(0), told.story(1)
    for lease in leased(told):
        fail(told.session, lease, "refused", permanent=True)
    told.merge(absorbed, survivor)
    assert retry(told.session, "score", [absorbed]) == 1
    assert ids(leased(told)) == [survivor]


@pytest.mark.parametrize(
    ("changes", "told_as"),
    [
        ({"size": 5}, None),
        ({"size": 6}, ["grew"]),
        ({"size": 3}, None),
        ({"size": 2}, ["shrank"]),
        ({"languages": ["en"]}, None),
        ({"languages": ["en", "es"]}, None),
        ({"languages": ["en", "es", "fr"]}, ["language"]),
        ({"sources": 9, "latest_time": "2026-03-02Z"}, None),
        ({"headline_id": 1}, ["headline"]),
        ({"size": 40, "languages": ["zh"], "headline_id": 1}, ["grew", "language", "headline"]),
    ],
)
def test_a_story_that_changed_in_a_way_that_matters_waits_again(told, changes, told_as):
    told.article()
    told.story(size=4, languages=("en", "es"))
    (first,) = leased(told)
    assert (first.changes, first.earlier) == ([], None)
    complete(told.session, first, {"score": 1.5})
    told.change(1, **changes)
    again = leased(told)
    assert [lease.changes for lease in again] == ([] if told_as is None else [told_as])
    for lease in again:
        assert lease.earlier == {"score": 1.5}
        complete(told.session, lease, {"score": 2})
    assert leased(told) == [], "it was done as it is now"


def test_what_changes_while_a_worker_is_at_it_waits_again(told):
    """The result rests on what the worker was handed, not on what stood there when it was done."""
    told.story(size=4)
    (lease,) = leased(told)
    told.change(1, size=8)
    complete(told.session, lease, {"score": 1})
    (again,) = leased(told)
    assert again.changes == ["grew"]


def test_the_earlier_result_outlasts_failures(told):
    told.story(size=4)
    do(told, score=1)
    told.change(1, size=8)
    (lease,) = leased(told)
    fail(told.session, lease, "no answer")
    assert retry(told.session, "score") == 1
    (lease,) = leased(told)
    assert (lease.changes, lease.earlier) == (["grew"], {"score": 1})
    fail(told.session, lease, "refused", permanent=True)
    (task,) = list_tasks(told.session, "score", "failed", 9)
    assert task.result == {"score": 1}


def test_a_survivor_waits_again_with_the_results_of_what_it_absorbed(told):
    absorbed, deeper, survivor = told.story(0), told.story(1), told.story(2)
    for lease in leased(told):
        complete(told.session, lease, {"score": lease.story_id})
    told.merge(deeper, absorbed)
    told.merge(absorbed, survivor)
    (lease,) = leased(told)
    assert (lease.story_id, lease.changes, lease.earlier) == (
        survivor,
        ["merged"],
        {"score": survivor},
    )
    at_hand = results_of_absorbed(told.session, "score", [survivor])
    assert at_hand == {survivor: {absorbed: {"score": absorbed}, deeper: {"score": deeper}}}
    assert results_of_absorbed(told.session, "other", [survivor]) == {}
    complete(told.session, lease, {"score": 9})
    assert leased(told) == []


def test_a_story_absorbed_while_a_worker_is_at_it_keeps_the_result_at_hand(told):
    absorbed, survivor = told.story(0), told.story(1)
    first, second = leased(told)
    told.merge(absorbed, survivor)
    for lease in (first, second):
        complete(told.session, lease, {"score": lease.story_id})
    (lease,) = leased(told)
    assert (lease.story_id, lease.changes) == (survivor, ["merged"])
    at_hand = results_of_absorbed(told.session, "score", [survivor])
    assert at_hand == {survivor: {absorbed: {"score": absorbed}}}


def test_an_absorbed_story_is_handed_out_no_more(told):
    absorbed, survivor = told.story(0), told.story(1)
    for lease in leased(told):
        fail(told.session, lease, "no answer")
    told.merge(absorbed, survivor)
    told.pass_time(timedelta(days=1))
    assert ids(leased(told)) == [survivor]


def test_a_task_given_back_is_handed_out_at_once(told):
    told.story()
    (lease,) = leased(told)
    give_back(told.session, lease)
    (again,) = leased(told)
    assert (again.attempts, again.token != lease.token) == (0, True)


@pytest.mark.parametrize(
    "result", [{"text": "a\0b"}, {"text": "\ud800"}, {"deep": [float("nan")]}, {"score": 1e400}]
)
def test_a_result_that_cannot_be_stored_is_refused_and_the_lease_holds(told, result):
    told.story()
    (lease,) = leased(told)
    before = told.rows()
    with pytest.raises(ValueError, match=r"cannot be stored|finite"):
        complete(told.session, lease, result)
    with pytest.raises(TypeError):
        complete(told.session, lease, {"odd": object()})
    assert told.rows() == before
    complete(told.session, lease, {"text": "ok"})


def test_scores_are_those_of_the_last_result(told):
    story = told.story(size=4)
    do(told, score=1, novelty=2, name="score")
    do(told, score=5, name="rank")
    assert scores(told.session, [story]) == {
        story: {"score": 1.0, "score.novelty": 2.0, "rank.score": 5.0}
    }
    told.change(story, size=8)
    do(told, score=3, name="score")
    assert scores(told.session, [story]) == {story: {"score": 3.0, "rank.score": 5.0}}


def test_stories_are_sorted_by_a_score(told):
    low, high, middle, without = (told.story(hours) for hours in range(4))
    given = {low: -1, high: 10, middle: 2.5}
    for lease in leased(told):
        score = given.get(lease.story_id)
        complete(told.session, lease, {} if score is None else {"score": score})
    found = list_stories(told.session, sort="score")
    assert [(story.id, story.score) for story in found] == [(high, 10), (middle, 2.5), (low, -1)]
    assert [story.id for story in list_stories(told.session, sort="score", most=1)] == [high]
    assert list_stories(told.session, sort="nothing") == []
    assert list_stories(told.session, sort="score", min_size=3) == []
    told.merge(high, low)
    assert [story.id for story in list_stories(told.session, sort="score")] == [middle, low]
    assert {story.score for story in list_stories(told.session)} == {None}
    assert without in {story.id for story in list_stories(told.session)}


def test_tasks_of_the_youngest_stories_are_listed_first(told):
    one, other = told.story(0), told.story(1)
    for name in ("translate", "score"):
        leased(told, name)
    listed = [(task.name, task.story_id) for task in list_tasks(told.session, None, None, 3)]
    assert listed == [("translate", other), ("score", other), ("translate", one)]
    assert list_tasks(told.session, "translate", "done", 9) == []
    assert [task.story_id for task in list_tasks(told.session, "score", "leased", 9)] == [
        other,
        one,
    ]


def test_asking_in_vain_changes_no_row(told):
    told.story()
    do(told, score=1)
    before = told.rows()
    assert leased(told) == []
    assert retry(told.session, "score") == 0
    assert told.rows() == before


def test_a_worker_never_waits_for_a_run(told):
    """A run holds its lock and has changed stories without committing."""
    from clustering.engine.runs import run_lock

    told.story(0)
    with run_lock(told.session.dsn), closing(Session(told.session.dsn)) as run, run.transaction():
        run.connection.execute("UPDATE story SET size = size + 7")
        with told.session.transaction(lock_timeout="200ms"):
            (lease,) = leased(told)
            complete(told.session, lease, {"score": 1})
    (again,) = leased(told)
    assert again.changes == ["grew"]
