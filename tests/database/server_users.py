"""Other processes that use an embedded server."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clustering.store.embedded import EmbeddedServer

_USER = """
import sys
from pathlib import Path
from clustering.store.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
print("starting", flush=True)
server.start()
print("started", flush=True)
sys.stdin.read()
server.close()
"""


@contextmanager
def user_process(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process about to start the server; it leaves when its input is closed."""
    command = [sys.executable, "-P", "-c", _USER, str(home)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "starting\n"
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


def await_start(process: subprocess.Popen[str]) -> None:
    line = process.stdout.readline()
    assert line == "started\n", process.stderr.read()


def leave(process: subprocess.Popen[str]) -> None:
    """Let a user leave in the ordinary way."""
    process.stdin.close()
    assert process.wait(30) == 0


def postmaster(server: EmbeddedServer) -> int:
    return int((server.data / "postmaster.pid").read_text().split("\n", 1)[0])


def ask(server: EmbeddedServer, text: str = "SELECT 1"):
    """The answer to a question that a running server can answer."""
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        return connection.execute(text).fetchone()[0]
