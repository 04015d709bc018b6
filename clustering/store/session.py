"""One connection to PostgreSQL: named statements, transactions with local settings, clear errors.

Every setting is local to a transaction and nothing is prepared on the server, so a session also
works behind a pooler in transaction mode.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from pgvector.psycopg import register_vector
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import class_row, namedtuple_row, scalar_row
from psycopg.types.datetime import TimestamptzLoader

from clustering.errors import DatabaseError, DatabaseUnreachable, ServerFull
from clustering.store.statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from psycopg.abc import Buffer

T = TypeVar("T")

_CONNECT_SECONDS = 10


class Session:
    """A connection that runs the statements of `sql/` by name.

    Args:
        dsn: libpq connection string or URL.

    Raises:
        DatabaseUnreachable: no server answers, or it refuses the login.
    """

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._parts: dict[str, object] = {}
        _require_readable(dsn)
        with translated_errors():
            self.connection = psycopg.connect(
                dsn,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=_CONNECT_SECONDS,
                application_name="story-clustering",
                row_factory=namedtuple_row,
            )
        self.connection.adapters.register_loader("timestamptz", _UtcLoader)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def bind(self, **parts: object) -> None:
        """Say what `{name}` stands for in statements from now on."""
        self._parts.update(parts)

    def register_vectors(self) -> None:
        """Let this connection read and write pgvector's types; the extension must exist."""
        with translated_errors():
            register_vector(self.connection)

    def part(self, name: str) -> str:
        """Return the table that `{name}` stands for."""
        return str(self._parts[name])

    def execute(self, name: str, /, **parameters: object) -> int:
        """Run a statement; returns the number of rows it changed or returned."""
        return self._run(self.connection.cursor(), name, parameters).rowcount

    def define(self, name: str, /, **parts: object) -> None:
        """Run a statement of data definition, with parts that hold for this call only."""
        with translated_errors():
            self.connection.execute(statements()[name].compose({**self._parts, **parts}))

    def rows(self, name: str, /, **parameters: object) -> list[Any]:
        """Run a query; returns its rows as named tuples."""
        return self._run(self.connection.cursor(), name, parameters).fetchall()

    def records(self, kind: type[T], name: str, /, **parameters: object) -> list[T]:
        """Run a query; returns its rows as records of a class whose fields are the columns."""
        cursor = self.connection.cursor(row_factory=class_row(kind))
        return self._run(cursor, name, parameters).fetchall()

    def value(self, name: str, /, **parameters: object) -> Any:  # noqa: ANN401 - a column of any type
        """Run a query; returns the first column of its first row, or None where it has no row."""
        cursor = self.connection.cursor(row_factory=scalar_row)
        return self._run(cursor, name, parameters).fetchone()

    def copy(self, name: str, types: Sequence[str], rows: Iterator[Sequence[object]]) -> int:
        """Write rows through a `COPY … FROM STDIN (FORMAT binary)` statement; returns their number."""
        statement = statements()[name].compose(self._parts)
        count = 0
        with translated_errors(), self.connection.cursor().copy(statement) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)
                count += 1
        return count

    @contextmanager
    def transaction(self, **settings: object) -> Iterator[None]:
        """Run a block in one transaction, with settings that last as long as it (`hnsw__ef_search`).

        A double underscore in a name stands for a dot. Rolls back when the block raises.
        """
        with translated_errors(), self.connection.transaction():
            for setting, value in settings.items():
                self.execute("set_local", setting=setting.replace("__", "."), value=str(value))
            yield

    def _run(
        self, cursor: psycopg.Cursor[T], name: str, parameters: Mapping[str, object]
    ) -> psycopg.Cursor[T]:
        statement = statements()[name]
        if statement.parameters != parameters.keys():
            raise TypeError(
                f"{name} takes {sorted(statement.parameters)}, not {sorted(parameters)}"
            )
        with translated_errors():
            return cursor.execute(statement.compose(self._parts), parameters or None)


class _UtcLoader(TimestamptzLoader):
    """Reads a time as UTC whatever the session's zone, which a pooler might change under us."""

    def load(self, data: Buffer) -> datetime:
        return super().load(data).astimezone(UTC)


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turn psycopg's errors into this package's, each with what to do.

    Raises:
        DatabaseUnreachable: the server cannot be reached or the connection broke.
        ServerFull: the server's disk or memory is exhausted.
        DatabaseError: the server refused for another reason that is not a defect of the program.
    """
    try:
        yield
    except (psycopg.errors.DiskFull, psycopg.errors.OutOfMemory) as error:
        raise ServerFull(
            f"the database server is out of space: {_first_line(error)}; "
            "the batch was rolled back: free some space and run again"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise DatabaseError(
            f"the database refuses: {_first_line(error)}; grant it to this role, or use its owner"
        ) from error
    except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.ObjectInUse) as error:
        raise DatabaseError(f"the database refuses: {_first_line(error)}") from error
    except psycopg.OperationalError as error:
        raise DatabaseUnreachable(
            f"cannot use the database: {_first_line(error)}; "
            "check --database or STORIES_DATABASE and that the server is up"
        ) from error


def _require_readable(dsn: str) -> None:
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise DatabaseUnreachable(
            f"the DSN cannot be read: {_first_line(error)}; "
            "it looks like postgresql://user@host/database"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
