"""What every part of the engine stands on: the open database, the model, the lock of a run."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING

from clustering.embedding.space import active_space, bind_active_space
from clustering.engine.model import Model
from clustering.engine.progress import Progress, Silent
from clustering.engine.runs import Run, run_lock
from clustering.engine.thresholds import Thresholds
from clustering.errors import StoriesError
from clustering.settings import DEFAULT_MODEL, Settings
from clustering.store.database import Database
from clustering.store.migrations import schema_version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from clustering.stories.calibration import Calibration

_WITHOUT_THRESHOLDS = frozenset(
    {"ingest", "feeds", "duplicates", "review", "move", "split", "merge", "undo"}
)


class Opened:
    """An open database with a model and thresholds; `Engine` adds what can be done with them.

    Args:
        database: a migrated database.
        settings: model and calibration.
        progress: shows how far long work is.
    """

    def __init__(self, database: Database, settings: Settings, progress: Progress) -> None:
        self.settings = settings
        self._database = database
        self._progress = progress
        bind_active_space(database.session)

    @classmethod
    def open(  # noqa: PLR0913 - one keyword for each setting
        cls,
        database: str | None = None,
        *,
        model: str | None = None,
        home: Path | None = None,
        calibration: Path | None = None,
        settings: Settings | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Open a database, made or migrated where needed.

        Args:
            database: DSN of a PostgreSQL 15 or newer with pgvector 0.8.0 or newer, or a plain
                name for a database of the embedded server. None takes `STORIES_DATABASE`, and
                without it the embedded server's usual database.
            model: name of a card, hub name, or path of a model folder; None takes the one that the
                database's articles are encoded with, and in a fresh database the default.
            home: folder of the embedded server and of models; None takes `STORIES_HOME` or the
                user's data folder.
            calibration: file of thresholds; None takes the model's own.
            settings: what the other arguments do not name.
            progress: shows how far long work is; None shows nothing.

        Raises:
            DatabaseError: the server cannot be started, reached or used.
        """
        given = {"database": database, "model": model, "home": home, "calibration": calibration}
        named = {name: value for name, value in given.items() if value is not None}
        chosen = replace(settings or Settings(), **named)  # type: ignore[arg-type] # each its own
        opened = Database(chosen.database, chosen.home, warnings.warn, read_only=chosen.read_only)
        return cls(opened, chosen, progress or Silent())

    def __enter__(self) -> Self:
        """Return the engine itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the engine."""
        self.close()

    def close(self) -> None:
        """Close the connection; the last user of the embedded server stops it."""
        self._database.close()

    @property
    def dsn(self) -> str:
        """Connection string of the database."""
        return self._database.dsn

    @property
    def schema_version(self) -> int:
        """Number of the last migration in the database."""
        return schema_version(self._database.session)

    @cached_property
    def model(self) -> Model:
        """The model named in the settings, else the database's own; loaded when something is encoded."""
        return Model(self.model_name, self.settings.home)

    @property
    def model_name(self) -> str:
        """Name of the model named in the settings, else of the database's own, else of the default."""
        active = active_space(self._database.session)
        return self.settings.model or (active.model if active else DEFAULT_MODEL)

    @cached_property
    def thresholds(self) -> Thresholds:
        """Gives the thresholds of the model in this database."""
        return Thresholds(self._database.session, self.model, self.settings.calibration)

    @property
    def calibration(self) -> Calibration:
        """The thresholds in force.

        Raises:
            CalibrationError: there are none for this model, and too few articles to find them.
        """
        return self.thresholds.require()

    @contextmanager
    def _working(self, command: str) -> Iterator[Run]:
        """Hold the run lock; close the run's row however the work ends."""
        settings: dict[str, object] = {"model": self.model_name}
        if command not in _WITHOUT_THRESHOLDS:
            known = self.thresholds.known()
            settings["calibration"] = asdict(known) if known else None
        with run_lock(self.dsn):
            run = Run(self._database.session, command, settings)
            try:
                yield run
            except BaseException:
                with suppress(StoriesError):
                    run.finish("failed")
                raise
            run.finish("done")
