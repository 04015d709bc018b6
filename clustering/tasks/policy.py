"""What tasks are called, how long failures wait, and which scores a result holds: pure decisions."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

TASK_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
DEFAULT_LEASE = timedelta(minutes=10)
SHORTEST_LEASE = timedelta(seconds=1)
# Stories are at most days old while articles join them; what is older is history.
DEFAULT_SPAN = timedelta(days=7)
FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(days=1)
_MOST_ERROR_CHARACTERS = 2000


def back_off(failures: int) -> timedelta:
    """Return how long to wait after a number of failures in a row, from 1.

    The wait doubles with each failure, as TCP's does (RFC 6298, section 5.5), up to a day.
    """
    doublings = min(failures - 1, 20)
    return min(FIRST_WAIT * (1 << doublings), LONGEST_WAIT)


def checked_name(name: str) -> str:
    """Return the name of a task.

    Raises:
        ValueError: it cannot be one.
    """
    if not TASK_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name of a task: lower-case letters, digits, - and _, a letter first"
        )
    return name


def scores_of(task: str, result: Mapping[str, object]) -> dict[str, float]:
    """Return what stories can be sorted by after a task: every number at the top of its result.

    A number under the task's own name has that name, any other is called `task.key`: two tasks
    may both give a `quality`.

    Raises:
        ValueError: a number is not finite.
    """
    scores = {
        key if key == task else f"{task}.{key}": float(value)
        for key, value in result.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    for name, value in scores.items():
        if not math.isfinite(value):
            raise ValueError(f"the score {name} is {value}; give a finite number")
    return scores


def error_text(error: BaseException | str) -> str:
    """Return what is kept of an error: its kind and message, without what a database cannot hold."""
    text = f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else error
    storable = text.encode("utf-8", "replace").decode().replace("\0", "�")
    return storable[:_MOST_ERROR_CHARACTERS]
