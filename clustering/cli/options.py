"""Options that commands share, and the engine that they open."""

from __future__ import annotations

import getpass
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clustering.settings import DEFAULT_MODEL, Settings, default_home

if TYPE_CHECKING:
    from collections.abc import Callable

    from clustering.engine import Engine

_DATABASE = click.option(
    "--database",
    metavar="DSN",
    envvar="STORIES_DATABASE",
    show_envvar=True,
    help="PostgreSQL with pgvector to use instead of the embedded one.",
)
HOME = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    default=default_home,
    help="Folder of the embedded database and of models.  [env var: STORIES_HOME]",
)
_READ_FROM = click.option(
    "--read-from",
    metavar="DSN",
    envvar="STORIES_READ_FROM",
    show_envvar=True,
    help="Replica to read from instead; nothing is migrated there.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_MODEL = click.option(
    "--model",
    help="Card in models/, hub name, or path of a model folder.  "
    f"[default: the database's own, {DEFAULT_MODEL} in a fresh one]",
)
_CALIBRATION = click.option(
    "--calibration",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Thresholds to use instead of the model's own.",
)


def _account() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no account has this process' number
        return "unknown"


BY = click.option("--by", default=_account, help="Who decides.  [default: the account's name]")


def database_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that only needs the database; it gets them as `settings`."""
    return _DATABASE(HOME(_JSON(_with_settings(command))))


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that only reads; it gets them as `settings`."""
    return _DATABASE(_READ_FROM(HOME(_JSON(_with_settings(command)))))


def model_reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that only reads, and thresholds too; it gets them as `settings`."""
    return _READ_FROM(model_options(command))


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that also encodes or clusters; it gets them as `settings`."""
    return _DATABASE(HOME(_JSON(_MODEL(_CALIBRATION(_with_settings(command))))))


def open_engine(settings: Settings) -> Engine:
    """Return an engine that shows its progress."""
    from clustering.cli.progress import Bars  # noqa: PLC0415 - keeps --help fast
    from clustering.engine import Engine  # noqa: PLC0415 - keeps --help fast

    return Engine.open(settings=settings, progress=Bars())


def _with_settings(command: Callable[..., Any]) -> Callable[..., Any]:
    names = [field.name for field in fields(Settings)]

    @wraps(command)
    def call(**values: object) -> object:
        given: dict[str, Any] = {name: values.pop(name) for name in names if name in values}
        if replica := values.pop("read_from", None):
            given |= {"database": replica, "read_only": True}
        return command(settings=Settings(**given), **values)

    return call
