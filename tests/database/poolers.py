"""A real pooler in transaction mode before the test server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTINGS = """
[databases]
* = host={host} port={port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
ignore_startup_parameters = extra_float_digits
logfile = {folder}/log
"""


@contextmanager
def pooled(dsn: str, folder: Path) -> Iterator[str]:
    """Yield a connection string that leads to a database through PgBouncer."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("pgbouncer is not installed")
    parts = conninfo_to_dict(dsn)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        own_port = probe.getsockname()[1]
    folder.chmod(0o777)
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        _SETTINGS.format(
            host=parts["host"],
            port=parts.get("port", 5432),
            user=parts["user"],
            own_port=own_port,
            folder=folder,
        )
    )
    # It refuses to run as root, and the server's socket is its own account's.
    account = ["-u", Path(parts["host"]).owner()] if os.geteuid() == 0 else []
    process = subprocess.Popen([program, "-q", *account, str(settings)])
    given = {"dbname": parts["dbname"], "user": parts["user"]}
    through = make_conninfo("", host="127.0.0.1", port=own_port, **given)
    try:
        _await(through, process, folder)
        yield through
    finally:
        process.terminate()
        process.wait(30)


def _await(dsn: str, process: subprocess.Popen, folder: Path) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                log = folder / "log"
                pytest.fail(log.read_text() if log.exists() else "pgbouncer does not start")
            time.sleep(0.05)
        else:
            return
