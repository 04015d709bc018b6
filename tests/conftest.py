"""A real server for each test session, one migrated template database, one copy of it a test."""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from psycopg import sql

from clustering.store.database import drop_database, make_database
from clustering.store.embedded import EmbeddedServer
from clustering.store.migrations import migrate
from clustering.store.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPLATE = "template_stories"
_DEFAULT_DATA = Path(__file__).parents[1] / ".." / "shared" / "data"


@pytest.fixture(scope="session")
def homes() -> Iterator[Path]:
    """A folder for the homes of servers.

    Not one of pytest's own: it closes those to other accounts whenever another session begins, and
    where the tests run as root the server has an account of its own.
    """
    with tempfile.TemporaryDirectory(prefix="stories-test-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def server(homes: Path) -> Iterator[EmbeddedServer]:
    """An embedded server of this session's own; each worker of pytest-xdist has one."""
    started = EmbeddedServer(homes / "session")
    started.start()
    _forget_durability(started.dsn("postgres"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def template_database(server: EmbeddedServer) -> str:
    """Name of a migrated database that nobody is connected to."""
    make_database(server.dsn("postgres"), TEMPLATE)
    session = Session(server.dsn(TEMPLATE))
    migrate(session)
    session.close()
    return TEMPLATE


@pytest.fixture(scope="session")
def database_numbers() -> Iterator[int]:
    """Numbers that no other database of the session's server has."""
    return count()


@pytest.fixture
def dsn(
    server: EmbeddedServer, template_database: str, database_numbers: Iterator[int]
) -> Iterator[str]:
    """Connection string of a fresh migrated database, dropped after the test."""
    name = f"test_{next(database_numbers)}"
    maintenance = Session(server.dsn("postgres"))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    maintenance.connection.execute(
        copy.format(sql.Identifier(name), sql.Identifier(template_database))
    )
    maintenance.close()
    yield server.dsn(name)
    drop_database(server.dsn("postgres"), name)


@pytest.fixture
def session(dsn: str) -> Iterator[Session]:
    """A session on a fresh migrated database."""
    opened = Session(dsn)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of measured data that is laid beside the repository, or a skip that says so."""
    named = os.environ.get("STORIES_TEST_DATA")
    folder = Path(named) if named else _DEFAULT_DATA
    if not folder.is_dir():
        pytest.skip(f"no test data at {folder.resolve()}; name its folder with STORIES_TEST_DATA")
    return folder.resolve()


@pytest.fixture(scope="session")
def model_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose bundled model is expanded once a session; workers of pytest-xdist share it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    home = shared / "model_home"
    home.mkdir(exist_ok=True)
    return home


def _forget_durability(dsn: str) -> None:
    """Spare the waits for a disk: no test here outlives a crash of the machine."""
    session = Session(dsn)
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        change = sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting))
        session.connection.execute(change)
    session.connection.execute("SELECT pg_reload_conf()")
    session.close()
