"""The command `stories`."""

from __future__ import annotations

from clustering.cli.main import main

__all__ = ["main"]
