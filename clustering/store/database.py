"""Which server an engine works on: the embedded one, or the one that a DSN names."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo
from psycopg.errors import DuplicateDatabase, UniqueViolation

from clustering.store.embedded import EmbeddedServer
from clustering.store.migrations import migrate, pgvector_warning, require_migrated
from clustering.store.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EMBEDDED_DATABASE = "stories"
_MAINTENANCE_DATABASE = "postgres"
_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Database:
    """A migrated database and, where it is an embedded one, a share in its server.

    Args:
        name: connection string of an outside server, or the plain name of a database of the
            embedded one, which is made when missing; None for the embedded server's usual one.
        home: folder of the embedded server.
        warn: called with what is wrong but works.
        read_only: it is only read, and may be a replica: the schema has to be up to date there.

    Raises:
        DatabaseError: the server cannot be started, reached or used; says why and what to do.
    """

    def __init__(
        self, name: str | None, home: Path, warn: Callable[[str], None], *, read_only: bool = False
    ) -> None:
        with ExitStack() as opened:
            self.dsn = dsn_of(name, home, opened)
            self.session = Session(self.dsn)
            opened.callback(self.session.close)
            if read_only:
                require_migrated(self.session)
            else:
                migrate(self.session)
            self._opened = opened.pop_all()
        if warning := pgvector_warning(self.session):
            warn(warning)

    def close(self) -> None:
        """Close the connection; the last user of the embedded server stops it."""
        self._opened.close()


def dsn_of(name: str | None, home: Path, opened: ExitStack) -> str:
    """Return the connection string of a database as `Database` names it.

    An embedded server is started for it, and closed with `opened`.
    """
    if name is not None and not _PLAIN_NAME.fullmatch(name):
        return name
    server = EmbeddedServer(home)
    server.start()
    opened.callback(server.close)
    make_database(server.dsn(_MAINTENANCE_DATABASE), name or EMBEDDED_DATABASE)
    return server.dsn(name or EMBEDDED_DATABASE)


@contextmanager
def scratch_database(name: str | None, home: Path) -> Iterator[str]:
    """Make a database beside another, on the same server, and drop it afterwards; yields its DSN.

    Args:
        name: the other database, as in `Database`.
        home: folder of the embedded server.

    Raises:
        DatabaseError: the server cannot be used, or does not let this role create databases.
    """
    with ExitStack() as opened:
        beside = dsn_of(name, home, opened)
        scratch = f"stories_scratch_{os.getpid()}_{secrets.token_hex(4)}"
        make_database(beside, scratch)
        opened.callback(drop_database, beside, scratch)
        yield make_conninfo(beside, dbname=scratch)


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
