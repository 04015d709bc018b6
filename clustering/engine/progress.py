"""How long work tells how far it is. The command line draws bars; a library is silent."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


class Progress(Protocol):
    """Shows how far a stage is."""

    def stage(self, name: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Begin a stage of `total` articles; yields what is called with each number done."""
        ...


class Silent:
    """Shows nothing."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:  # noqa: ARG002 - Progress
        """Do nothing; see `Progress`."""
        yield lambda _: None
