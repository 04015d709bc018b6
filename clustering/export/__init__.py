"""Stories in files that other programs read."""

from __future__ import annotations

from clustering.export.files import FORMATS, write_rows

__all__ = ["FORMATS", "write_rows"]
