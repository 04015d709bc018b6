"""Options that commands share, and the engine that they open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clustering.settings import DEFAULT_MODEL, Settings, default_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from clustering.engine import Engine

F = TypeVar("F", bound="Callable[..., Any]")

_DATABASE = click.option(
    "--database",
    metavar="DSN",
    envvar="STORIES_DATABASE",
    show_envvar=True,
    help="PostgreSQL with pgvector to use instead of the embedded one.",
)
_HOME = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    default=default_home,
    help="Folder of the embedded database and of models.  [env var: STORIES_HOME]",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_MODEL = click.option(
    "--model",
    default=DEFAULT_MODEL,
    show_default=True,
    help="Card in models/, hub name, or path of a model folder.",
)
_CALIBRATION = click.option(
    "--calibration",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Thresholds to use instead of the model's own.",
)


def database_options(command: F) -> F:
    """Add the options of a command that only needs the database."""
    return _DATABASE(_HOME(_JSON(command)))


def model_options(command: F) -> F:
    """Add the options of a command that also encodes or clusters."""
    return database_options(_MODEL(_CALIBRATION(command)))


def open_engine(
    database: str | None,
    home: Path,
    model: str = DEFAULT_MODEL,
    calibration: Path | None = None,
) -> Engine:
    """Return the engine that the options describe."""
    from clustering.cli.progress import Bars  # noqa: PLC0415 - keeps --help fast
    from clustering.engine import Engine  # noqa: PLC0415 - keeps --help fast

    settings = Settings(database, home, model, calibration)
    return Engine.open(settings=settings, progress=Bars())
