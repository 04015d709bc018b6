"""A real streaming replica of a server of the tests."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clustering.store.embedded import EmbeddedServer


@contextmanager
def replica(primary: EmbeddedServer, folder: Path, database: str) -> Iterator[str]:
    """Yield the connection string of a database on a replica that follows a primary."""
    data = folder / "replica"
    folder.mkdir(parents=True, exist_ok=True)
    primary._own(folder)
    source = ("-h", primary.socket_folder, "-U", "postgres")
    primary._run("pg_basebackup", *source, "-D", data, "-X", "stream", "-R", "-c", "fast")
    (data / ".s.PGSQL.5432.lock").unlink()  # the copy of the primary's own
    options = f"-c listen_addresses= -c unix_socket_directories={data}"
    primary._run("pg_ctl", "-D", data, "-w", "-l", data / "log", "-o", options, "start")
    dsn = make_conninfo(host=str(data), user="postgres", dbname=database)
    try:
        yield dsn
    finally:
        primary._run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")


def caught_up(primary: str, following: str) -> None:
    """Wait until a replica has replayed all that its primary wrote."""
    with psycopg.connect(primary) as one, psycopg.connect(following, autocommit=True) as other:
        position = one.execute("SELECT pg_current_wal_lsn()").fetchone()[0]
        for _ in range(600):
            replayed = other.execute(
                "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (position,)
            ).fetchone()[0]
            if replayed:
                return
            time.sleep(0.1)
    raise AssertionError("the replica does not catch up")
