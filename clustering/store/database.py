"""Which server an engine works on: the embedded one, or the one that a DSN names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.errors import DuplicateDatabase, UniqueViolation

from clustering.store.embedded import EmbeddedServer
from clustering.store.migrations import migrate, pgvector_warning
from clustering.store.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EMBEDDED_DATABASE = "stories"
_MAINTENANCE_DATABASE = "postgres"


class Database:
    """A migrated database and, where it is the embedded one, a share in its server.

    Args:
        dsn: connection string of an outside server; None for the embedded one.
        home: folder of the embedded server.
        warn: called with what is wrong but works.

    Raises:
        DatabaseError: the server cannot be started, reached or used; says why and what to do.
    """

    def __init__(self, dsn: str | None, home: Path, warn: Callable[[str], None]) -> None:
        self._server = None if dsn else EmbeddedServer(home)
        try:
            self.dsn = dsn or self._start()
            self.session = Session(self.dsn)
            migrate(self.session)
        except BaseException:
            self.close()
            raise
        if not dsn:
            return
        if warning := pgvector_warning(self.session):
            warn(warning)

    def close(self) -> None:
        """Close the connection; the last user of the embedded server stops it."""
        if hasattr(self, "session"):
            self.session.close()
        if self._server is not None:
            self._server.close()

    def _start(self) -> str:
        assert self._server is not None
        self._server.start()
        make_database(self._server.dsn(_MAINTENANCE_DATABASE), EMBEDDED_DATABASE)
        return self._server.dsn(EMBEDDED_DATABASE)


def make_database(dsn: str, name: str) -> None:
    """Create a database on a server unless it is there.

    Args:
        dsn: any database of the server, with the right to create others.
        name: the new database.
    """
    session = Session(dsn)
    try:
        if not session.value("has_database", name=name):
            session.define("create_database", name=name)
    except (DuplicateDatabase, UniqueViolation):
        pass  # another process was faster
    finally:
        session.close()


def drop_database(dsn: str, name: str) -> None:
    """Drop a database of a server, with whoever is connected to it."""
    session = Session(dsn)
    try:
        session.define("drop_database", name=name)
    finally:
        session.close()
