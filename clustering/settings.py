"""Where things are kept and which server and model to use. Thresholds are not here: see calibration."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

DEFAULT_MODEL = "multilingual-e5-small"


def default_home() -> Path:
    """Return `STORIES_HOME`, or the user's data folder for this program."""
    named = os.environ.get("STORIES_HOME")
    return (
        Path(named).expanduser() if named else Path(platformdirs.user_data_dir("story-clustering"))
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """What an engine needs to know before it starts.

    Attributes:
        database: DSN of an outside server; None means the embedded one under `home`.
        home: folder of the embedded server and of expanded models.
        model: name of a card in `models/`, a hub name, or the path of a model folder; None means the
            model that the database's articles are encoded with, and the default one in a fresh database.
        calibration: path of a calibration file; None means the model's own.
        read_only: the database is only read, and may be a replica: nothing is migrated.
    """

    database: str | None = field(default_factory=lambda: os.environ.get("STORIES_DATABASE") or None)
    home: Path = field(default_factory=default_home)
    model: str | None = None
    calibration: Path | None = None
    read_only: bool = False
