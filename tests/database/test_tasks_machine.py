"""Random sequences of everything that can happen to tasks, against a slow model in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from clustering.errors import LeaseLost
from clustering.tasks import leases
from clustering.tasks.leases import Lease, Wanted

if TYPE_CHECKING:
    from told import Told

NAMES = st.sampled_from(["score", "translate"])
LANGUAGES = st.sets(st.sampled_from(["en", "es", "ja"]), min_size=1)
LEASE = timedelta(minutes=10)


@dataclass
class Seen:
    """What a worker sees of a story."""

    size: int
    languages: set[str]
    headline: int
    absorbed: set[int]


@dataclass
class Job:
    """A task of one story. `wait` is what is left of a lease or a back-off."""

    state: str = "waiting"
    attempts: int = 0
    wait: timedelta = timedelta(0)
    token: object = None
    leased_as: Seen | None = None
    done_as: Seen | None = None
    result: dict | None = None


@dataclass
class Tale:
    """A story of the model."""

    hours: int
    size: int
    languages: set[str]
    headline: int
    absorbed: set[int] = field(default_factory=set)
    survivor: int | None = None

    def seen(self) -> Seen:
        return Seen(self.size, set(self.languages), self.headline, set(self.absorbed))


def changes(before: Seen | None, after: Tale) -> list[str]:
    if before is None:
        return []
    rules = {
        "grew": after.size >= 1.5 * before.size,
        "shrank": after.size <= before.size * 2 / 3,
        "language": bool(after.languages - before.languages),
        "headline": after.headline != before.headline,
        "merged": bool(after.absorbed - before.absorbed),
    }
    return [name for name, met in rules.items() if met]


class Tasks(RuleBasedStateMachine):
    """The real tables and the model, side by side."""

    told: Told
    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.told.sql("TRUNCATE story, task, story_score RESTART IDENTITY CASCADE")
        self.headlines = [self.told.article() for _ in range(2)]
        self.tales: dict[int, Tale] = {}
        self.jobs: dict[tuple[str, int], Job] = {}
        self.scores: dict[int, dict[str, float]] = {}

    @rule(hours=st.integers(0, 400), size=st.integers(2, 9), languages=LANGUAGES)
    def appear(self, hours, size, languages):
        story = self.told.story(hours, size, tuple(languages))
        self.told.change(story, headline_id=self.headlines[0])
        self.tales[story] = Tale(hours, size, languages, self.headlines[0])

    @precondition(lambda self: self.tales)
    @rule(data=st.data(), size=st.integers(2, 20), languages=LANGUAGES, head=st.integers(0, 1))
    def change(self, data, size, languages, head):
        story = data.draw(st.sampled_from(sorted(self.tales)))
        tale = self.tales[story]
        tale.size, tale.languages, tale.headline = size, languages, self.headlines[head]
        self.told.change(
            story, size=size, languages=sorted(languages), headline_id=self.headlines[head]
        )

    @precondition(lambda self: len(self.live()) > 1)
    @rule(data=st.data())
    def merge(self, data):
        pair = st.permutations(sorted(self.live())).map(lambda order: order[:2])
        absorbed, survivor = data.draw(pair)
        self.told.merge(absorbed, survivor)
        for story, tale in self.tales.items():
            if absorbed in {story, tale.survivor}:
                tale.survivor = survivor
                self.tales[survivor].absorbed.add(story)

    @rule(minutes=st.sampled_from([1, 5, 10, 60, 5000]))
    def pass_time(self, minutes):
        self.told.pass_time(timedelta(minutes=minutes))
        for job in self.jobs.values():
            job.wait -= timedelta(minutes=minutes)

    @rule(
        target=held,
        name=NAMES,
        limit=st.integers(1, 4),
        min_size=st.integers(2, 5),
        languages=st.none() | LANGUAGES,
    )
    def lease(self, name, limit, min_size, languages):
        wanted = Wanted(limit, min_size, languages and sorted(languages), None, LEASE)
        found = {
            lease.story_id: lease for lease in leases.lease_tasks(self.told.session, name, wanted)
        }
        due = [
            story
            for story, tale in self.live().items()
            if self.since() <= tale.hours
            and tale.size >= min_size
            and (languages is None or languages & tale.languages)
            and self.waits(name, story)
        ]
        due.sort(key=lambda story: (self.tales[story].hours, story), reverse=True)
        assert found.keys() == set(due[:limit])
        for story, lease in found.items():
            self.hand(name, story, lease)
        return list(found.values())

    @rule(held=consumes(held), score=st.integers(-3, 3))
    def complete(self, held: list[Lease], score):
        for lease in held:
            job = self.jobs[lease.task, lease.story_id]
            try:
                leases.complete(self.told.session, lease, {"score": score})
            except LeaseLost:
                assert job.token != lease.token
            else:
                assert job.token == lease.token
                done = Job("done", done_as=job.leased_as, result={"score": score})
                self.jobs[lease.task, lease.story_id] = done
                name = "score" if lease.task == "score" else f"{lease.task}.score"
                self.scores.setdefault(lease.story_id, {})[name] = score

    @rule(held=consumes(held), permanent=st.booleans())
    def fail(self, held: list[Lease], permanent):
        for lease in held:
            job = self.jobs[lease.task, lease.story_id]
            try:
                leases.fail(self.told.session, lease, "no answer", permanent=permanent)
            except LeaseLost:
                assert job.token != lease.token
            else:
                assert job.token == lease.token
                job.attempts += 1
                job.state = "failed" if permanent else "waiting"
                job.wait = min(timedelta(minutes=2 ** (job.attempts - 1)), timedelta(days=1))
                job.token = None

    @rule(held=consumes(held))
    def crash(self, held):
        """The worker is gone and says nothing."""

    @rule(name=NAMES)
    def retry(self, name):
        failed = [
            job
            for (task, _), job in self.jobs.items()
            if task == name and job.attempts and job.state in ("waiting", "failed")
        ]
        assert leases.retry(self.told.session, name) == len(failed)
        for job in failed:
            job.state, job.attempts, job.wait = "waiting", 0, timedelta(0)

    @invariant()
    def the_rows_are_those_of_the_model(self):
        rows = self.told.sql("SELECT name, story_id, state, attempts, token, result FROM task")
        found = {(row.name, row.story_id): tuple(row[2:]) for row in rows}
        model = {
            key: (job.state, job.attempts, job.token, job.result) for key, job in self.jobs.items()
        }
        untouched = ("waiting", 0, None, None)
        assert {key: row for key, row in found.items() if key in model or row != untouched} == model
        known = leases.scores(self.told.session, list(self.tales))
        assert known == {story: self.scores.get(story, {}) for story in self.tales}

    def live(self) -> dict[int, Tale]:
        return {story: tale for story, tale in self.tales.items() if tale.survivor is None}

    def since(self) -> float:
        return max(tale.hours for tale in self.live().values()) - 7 * 24

    def waits(self, name: str, story: int) -> bool:
        job = self.jobs.get((name, story), Job())
        if job.state == "done":
            return bool(changes(job.done_as, self.tales[story]))
        return job.state != "failed" and job.wait <= timedelta(0)

    def hand(self, name: str, story: int, lease: Lease) -> None:
        job = self.jobs.setdefault((name, story), Job())
        assert lease.changes == changes(job.done_as, self.tales[story])
        assert lease.earlier == job.result
        job.attempts += job.state == "leased"
        assert lease.attempts == job.attempts
        job.state, job.wait, job.token = "leased", LEASE, lease.token
        job.leased_as = self.tales[story].seen()


@pytest.mark.parametrize("steps", [12, 40])
def test_whatever_happens_tasks_are_in_the_state_of_the_model(told, steps):
    class Machine(Tasks):
        pass

    Machine.told = told
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
