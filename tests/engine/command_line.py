"""Runs `stories` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Ran:
    """What a process left."""

    status: int
    out: str
    err: str

    @property
    def document(self):
        return json.loads(self.out)


@dataclass
class CommandLine:
    """Runs `stories` on one database."""

    dsn: str | None
    home: Path

    def __call__(self, *arguments, stdin=None, env=None):
        named = {"STORIES_HOME": str(self.home), "STORIES_DATABASE": self.dsn or ""}
        done = subprocess.run(
            [sys.executable, "-m", "clustering", *map(str, arguments)],
            check=False,
            capture_output=True,
            input=stdin,
            timeout=300,
            env={**os.environ, **named, **(env or {})},
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
