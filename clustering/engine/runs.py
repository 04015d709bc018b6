"""A run: the one process that works on a database, what it counted and how long each stage took."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from psycopg.types.json import Jsonb

from clustering.errors import RunLocked
from clustering.store.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clustering.records import Refusal


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did.

    Attributes:
        run_id: id that every decision of the run is recorded under; None where it changed nothing.
        counts: `new`, `changed`, `unchanged`, `duplicate`, `rejected` articles; `encoded`,
            `matched`, `discovered`, `attached`, `unplaced` articles; `stories` made, `merges`.
        seconds: time by stage: `ingest`, `encode`, `match`, `discover`, `merge`.
        refusals: input that was refused, while the rest went through.
    """

    run_id: int | None
    counts: Mapping[str, int]
    seconds: Mapping[str, float]
    refusals: tuple[Refusal, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as the command line prints it with `--json`."""
        return {
            "run_id": self.run_id,
            "counts": dict(self.counts),
            "seconds": {stage: round(spent, 3) for stage, spent in self.seconds.items()},
            "refusals": [str(refusal) for refusal in self.refusals],
        }


@dataclass
class Run:
    """A run in progress. Its row is written when `id` is first asked for: a run with nothing new writes none.

    `now` is the time that its work takes for the present: when it began, or the corpus' own in a replay.
    """

    session: Session
    command: str
    settings: Mapping[str, object]
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    refusals: list[Refusal] = field(default_factory=list)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @cached_property
    def id(self) -> int:
        """The run's id; registers it."""
        self.session.execute("fail_dead_runs")
        settings = Jsonb(dict(self.settings))
        return int(
            self.session.value(
                "start_run", command=self.command, started_at=self.started_at, settings=settings
            )
        )

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the time that a block takes to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - start  # type: ignore[assignment] # a Counter adds floats too

    def finish(self, outcome: str) -> None:
        """Write what the run did into its row, where it has one."""
        if "id" in self.__dict__:
            counts, seconds = Jsonb(dict(self.counts)), Jsonb(dict(self.seconds))
            self.session.execute(
                "finish_run", run_id=self.id, counts=counts, seconds=seconds, outcome=outcome
            )

    def report(self) -> RunReport:
        """Return what the run did so far."""
        return RunReport(
            self.__dict__.get("id"), dict(self.counts), dict(self.seconds), tuple(self.refusals)
        )


@contextmanager
def run_lock(dsn: str) -> Iterator[None]:
    """Hold the lock of the one run that may work on a database.

    The lock belongs to a transaction of a connection of its own, which also holds behind a pooler
    in transaction mode; however the process ends, the server lets go of it.

    Raises:
        RunLocked: another run holds it.
    """
    busy = "another run works on this database; try again when it has finished"
    with _held(dsn, busy, "try_run_lock"):
        yield


@contextmanager
def space_lock(dsn: str, space: str) -> Iterator[None]:
    """Hold the lock of the one process that may fill a space; runs go on beside it.

    Raises:
        RunLocked: another process fills it.
    """
    busy = f"another process fills the space {space}; try again when it has finished"
    with _held(dsn, busy, "try_space_lock", space=space):
        yield


@contextmanager
def _held(dsn: str, busy: str, statement: str, **parameters: object) -> Iterator[None]:
    guard = Session(dsn)
    try:
        with guard.transaction(idle_in_transaction_session_timeout=0):
            if not guard.value(statement, **parameters):
                raise RunLocked(busy)
            yield
    finally:
        guard.close()
