"""How a reader gives up on a source or a row; it never leaves this package."""

from __future__ import annotations

from clustering.errors import SourceError
from clustering.records import Refusal


class Refused(SourceError):
    """A source, or one row of it, is refused; `read_sources` makes a `Refusal` of it.

    Attributes:
        reason: what is wrong.
        remedy: what to do about it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy

    def at(self, source: str, line: int | None = None) -> Refusal:
        """Return the refusal of `source`, or of one line of it."""
        return Refusal(source, line, self.reason, self.remedy)
