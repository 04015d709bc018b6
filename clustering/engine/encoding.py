"""Encoding ahead of the runs: by workers, any number of them on any number of machines."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
import warnings
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clustering.embedding.backlog import count_due
from clustering.embedding.filling import END_OF_TIME
from clustering.embedding.sharing import LEASE, Sharing
from clustering.embedding.space import use_space
from clustering.engine.opened import Opened
from clustering.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta
    from multiprocessing.context import SpawnProcess
    from multiprocessing.sharedctypes import Synchronized

    from clustering.settings import Settings

_LOOK_SECONDS = 0.2


class Encoding(Opened):
    """The part of the engine that encodes without placing anything."""

    def encode(self, *, workers: int = 1, poll: timedelta | None = None) -> int:
        """Encode articles for the next run, which finds them done; a run may go on meanwhile.

        May be called on any number of machines at once: articles are leased, and those of a worker
        that died are taken over after five minutes. The run goes by the order of time whoever encodes,
        so that its stories are those of one encoder.

        Args:
            workers: processes, each on its share of this machine's cores; with 1 this process itself.
            poll: how long to wait for new articles when there are none; None returns then.

        Returns:
            How many articles were encoded.

        Raises:
            InvalidInput: `workers` is less than 1.
            ModelError: the database's articles are encoded with another model.
        """
        if workers < 1:
            raise InvalidInput(f"{workers} workers encode nothing; give 1 or more")
        session = self._database.session
        use_space(session, self.model.space())
        due = count_due(session, END_OF_TIME, datetime.now(UTC))
        with self._progress.stage("encode", due) as advance:
            if workers == 1:
                return self._work(poll, advance)
            chosen = replace(self.settings, database=self.dsn, model=self.model_name)
            return _in_processes(chosen, workers, poll, advance)

    def _work(self, poll: timedelta | None, advance: Callable[[int], None]) -> int:
        """Encode until nothing waits, and then, told to poll, for ever."""
        total, sharing = 0, Sharing(self._database.session, self.model.encode)
        while True:
            use_space(self._database.session, self.model.space())  # another may serve by now
            done = sharing.work(self.model.card.lede_chars)
            total += done
            advance(done)
            if not done and poll is None:
                return total
            if not done:
                time.sleep(poll.total_seconds())  # type: ignore[union-attr] # None returned above


def _in_processes(
    settings: Settings, workers: int, poll: timedelta | None, advance: Callable[[int], None]
) -> int:
    """Let processes encode; warns of those that died. Returns how many articles were encoded."""
    context = multiprocessing.get_context("spawn")
    done = context.Value("q", 0)
    processes = [
        context.Process(target=_worker, args=(settings, share, poll, done))
        for share in core_shares(sorted(os.sched_getaffinity(0)), workers)
    ]
    for process in processes:
        process.start()
    try:
        _await(processes, done, advance)
    finally:
        for process in processes:
            process.terminate()
            process.join()
    if died := sum(process.exitcode != 0 for process in processes):
        warnings.warn(
            f"{died} of {workers} workers died; what they had leased is free again in "
            f"{LEASE.total_seconds() / 60:g} minutes, and the next run encodes it",
            stacklevel=4,
        )
    return int(done.value)


def core_shares(cores: Sequence[int], workers: int) -> list[list[int]]:
    """Deal cores out to workers; where there are fewer cores than workers, some have the same."""
    if workers >= len(cores):
        return [[cores[number % len(cores)]] for number in range(workers)]
    return [list(cores[number::workers]) for number in range(workers)]


def _await(
    processes: Sequence[SpawnProcess], done: Synchronized[int], advance: Callable[[int], None]
) -> None:
    seen = 0
    while any(process.is_alive() for process in processes):
        time.sleep(_LOOK_SECONDS)
        advance(done.value - seen)
        seen = done.value


def _worker(
    settings: Settings, cores: Sequence[int], poll: timedelta | None, done: Synchronized[int]
) -> None:
    """Encode in a process of its own; asked to stop, it lets its articles go."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    os.sched_setaffinity(0, cores)

    def advance(count: int) -> None:
        with done.get_lock():
            done.value += count

    with Encoding.open(settings=settings) as engine:
        engine._work(poll, advance)  # noqa: SLF001 - the same class, in another process
