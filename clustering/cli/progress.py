"""Progress bars on stderr, on a terminal only."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tqdm import tqdm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Bars:
    """Shows one bar for each stage of long work."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show a bar while a block runs; yields what advances it by a number of articles."""
        # disable=None hides the bar where stderr is no terminal.
        with tqdm(total=total, desc=name, unit=" articles", disable=None, leave=False) as bar:
            yield lambda count: bar.update(count) and None
