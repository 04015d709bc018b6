"""How a reader gives up on a whole source; it never leaves this package."""

from __future__ import annotations

from clustering.errors import SourceError
from clustering.records import Refusal


class Unreadable(SourceError):
    """A source cannot be read; becomes one `Refusal` in `read_sources`.

    Attributes:
        reason: what is wrong.
        remedy: what to do about it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")
        self.reason = reason
        self.remedy = remedy

    def refusal(self, source: str) -> Refusal:
        """Return the refusal of the whole of `source`."""
        return Refusal(source, None, self.reason, self.remedy)
