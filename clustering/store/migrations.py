"""Numbered migrations from `sql/migrations/`, each applied once, in a transaction of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import psycopg

from clustering.errors import DatabaseError, PgvectorMissing, PgvectorTooOld
from clustering.store.session import translated_errors

if TYPE_CHECKING:
    from clustering.store.session import Session

_FILE = re.compile(r"(?P<number>\d{4})_(?P<name>\w+)\.sql")
# Iterative index scans came with 0.8.0; index faults on vacuum were mended in 0.8.4 (its changelog).
OLDEST_PGVECTOR = (0, 8, 0)
SOUND_PGVECTOR = (0, 8, 4)
OLDEST_SERVER = 150000


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file: `number` from 1 without gaps, `name`, and its SQL `text`."""

    number: int
    name: str
    text: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all migrations in order.

    Raises:
        ValueError: a file is misnamed, or numbers are not 1, 2, 3, …
    """
    found = []
    for file in files("clustering.sql").joinpath("migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match is None:
            raise ValueError(f"sql/migrations/{file.name} is not called NNNN_name.sql")
        found.append(Migration(int(match["number"]), match["name"], file.read_text("utf-8")))
    found.sort(key=lambda migration: migration.number)
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError("sql/migrations/ is not numbered 1, 2, 3, …")
    return tuple(found)


def migrate(session: Session) -> list[Migration]:
    """Bring the schema up to date; returns the migrations applied now.

    Safe to call from several processes at once: they take turns.

    Raises:
        PgvectorMissing: the server has no pgvector.
        PgvectorTooOld: its pgvector is older than 0.8.0.
        DatabaseError: the server is older than 15, or the schema is newer than this program.
    """
    if _known_version(session) == len(migrations()):
        return []
    _require_server(session)
    return [step for step in migrations() if _apply(session, step)]


def require_migrated(session: Session) -> None:
    """Make sure that a database which is only read, such as a replica, has this program's schema.

    Raises:
        DatabaseError: its schema is older or newer.
    """
    version = _known_version(session)
    if version < len(migrations()):
        raise DatabaseError(
            f"the database to read from has schema {version}, this program needs {len(migrations())}; "
            "run `stories init` on the one that it follows, and let it catch up"
        )


def schema_version(session: Session) -> int:
    """Return the number of the last migration applied; 0 for an empty database."""
    if session.value("has_migration_table"):
        return int(session.value("last_migration"))
    return 0


def _known_version(session: Session) -> int:
    version = schema_version(session)
    if version > len(migrations()):
        raise DatabaseError(
            f"the database has schema {version}, this program knows up to {len(migrations())}; "
            "upgrade story-clustering"
        )
    return version


def pgvector_warning(session: Session) -> str | None:
    """Return what is wrong with an old pgvector that still works, or None."""
    version = _numbers(session.value("installed_pgvector"))
    if version >= SOUND_PGVECTOR:
        return None
    return f"pgvector {_dotted(version)} has index faults mended in 0.8.4; upgrade the extension"


def _apply(session: Session, step: Migration) -> bool:
    """Apply one migration unless another process has; the lock makes them take turns."""
    with session.transaction():
        session.execute("lock_migrations")
        if schema_version(session) >= step.number:
            return False
        session.connection.execute(step.text)
        session.execute("record_migration", number=step.number, name=step.name)
    return True


def _require_server(session: Session) -> None:
    if session.connection.info.server_version < OLDEST_SERVER:
        raise DatabaseError("the server is older than PostgreSQL 15; upgrade it")
    offered = session.value("offered_pgvector")
    installed = session.value("installed_pgvector")
    if offered is None:
        raise PgvectorMissing(
            "the server has no pgvector extension; install it there (package postgresql-NN-pgvector, "
            "0.8.0 or newer), or leave --database out to use the embedded server"
        )
    if _numbers(installed or offered) < OLDEST_PGVECTOR:
        raise PgvectorTooOld(
            f"the server's pgvector is {installed or offered}, 0.8.0 or newer is needed; "
            "upgrade it, then run ALTER EXTENSION vector UPDATE"
        )
    if installed is None:
        _create_extension(session)


def _create_extension(session: Session) -> None:
    try:
        with translated_errors():
            session.execute("create_pgvector")
    except psycopg.errors.UniqueViolation:
        pass  # another process created it between our look and our try


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
