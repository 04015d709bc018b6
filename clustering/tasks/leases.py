"""Tasks in the database: handed out under a lease, completed, failed, tried again.

A lease is a row lock for the moment of handing out, and a token with a time on the server's clock
afterwards: a worker may die, and no connection stays open while it works. Nothing here takes the
lock of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.errors import DataError
from psycopg.types.json import Jsonb

from clustering.errors import LeaseLost
from clustering.tasks.policy import (
    DEFAULT_LEASE,
    DEFAULT_SPAN,
    SHORTEST_LEASE,
    back_off,
    checked_name,
    error_text,
    scores_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, timedelta
    from uuid import UUID

    from clustering.store.session import Session

# From each story of the window to its task by key. Left to itself the planner reads the tasks of all
# history once, as long as that seems cheaper than some thousand look-ups.
_BY_KEY = {"enable_hashjoin": "off", "enable_mergejoin": "off"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which stories a worker asks for.

    Attributes:
        limit: at most so many.
        min_size: least number of articles.
        languages: stories with at least one of these BCP 47 tags; None for any.
        since: stories whose latest article is older are left out; None for seven days before the
            latest story.
        lease: how long nobody else gets them.
    """

    limit: int = 50
    min_size: int = 2
    languages: Sequence[str] | None = None
    since: datetime | None = None
    lease: timedelta = DEFAULT_LEASE


@dataclass(frozen=True, slots=True)
class Lease:
    """A task of one story in the hands of one worker.

    Attributes:
        task: name of the task.
        story_id: story that it is about.
        token: what the worker shows when it is done.
        leased_until: when another may take over, on the server's clock.
        attempts: failures and lost leases since the last success.
        changes: what changed since the last success: `grew` (by half), `shrank` (by a third),
            `language` (a new one), `headline` (another article), `merged` (with another story).
            Empty the first time.
        earlier: result of the last success, or None.
    """

    task: str
    story_id: int
    token: UUID
    leased_until: datetime
    attempts: int
    changes: list[str]
    earlier: Any


@dataclass(frozen=True, slots=True)
class Task:
    """The state of a task of one story.

    Attributes:
        name: name of the task.
        story_id: story that it is about.
        state: `waiting`, `leased`, `done`, or `failed` for good.
        attempts: failures and lost leases since the last success.
        due_at: when a waiting one is handed out again, or a lease runs out.
        error: the last failure since the last success.
        done_at: when it last succeeded.
        result: of that success.
    """

    name: str
    story_id: int
    state: str
    attempts: int
    due_at: datetime
    error: str | None
    done_at: datetime | None
    result: Any


def lease_tasks(session: Session, name: str, wanted: Wanted) -> list[Lease]:
    """Lease the task of the latest stories that wait for it; each to one worker only.

    Raises:
        ValueError: the name cannot be one, or the lease is shorter than a second.
    """
    if wanted.lease < SHORTEST_LEASE:
        raise ValueError(f"a lease of {wanted.lease} is over before anything is done; ask for more")
    since = wanted.since or _default_since(session)
    if since is None:
        return []
    which = {
        "name": checked_name(name),
        "since": since,
        "min_size": wanted.min_size,
        "languages": None if wanted.languages is None else list(wanted.languages),
    }
    found: list[Lease] = []
    while (lacking := wanted.limit - len(found)) > 0:
        # Other workers may be handed what is enrolled here; then there may be more stories to enrol.
        with session.transaction(**_BY_KEY):
            fresh = session.value("enrol_stories", most=lacking, **which)
        with session.transaction(**_BY_KEY):
            found += session.records(
                Lease, "lease_tasks", most=lacking, lease=wanted.lease, **which
            )
        if not fresh:
            break
    return found


def results_of_absorbed(
    session: Session, name: str, story_ids: Sequence[int]
) -> dict[int, dict[int, Any]]:
    """Return the results that a task had for stories absorbed by some others: by survivor, by old id."""
    found: dict[int, dict[int, Any]] = {}
    for row in session.rows("results_of_absorbed", name=name, story_ids=list(story_ids)):
        found.setdefault(row.story_id, {})[row.absorbed_id] = row.result
    return found


def give_back(session: Session, lease: Lease) -> None:
    """Let go of a task that was not begun."""
    session.execute("return_task", **_claim(lease))


def complete(session: Session, lease: Lease, result: Mapping[str, object]) -> None:
    """Keep the result of a task, and its numbers as scores.

    Raises:
        LeaseLost: the task is no longer this worker's.
        TypeError: the result is no JSON.
        ValueError: the result holds something that JSON or the database cannot.
    """
    scores = scores_of(lease.task, result)
    story = {"story_id": lease.story_id, "task": lease.task}
    with session.transaction():
        try:
            kept = session.execute("complete_task", result=Jsonb(dict(result)), **_claim(lease))
        except DataError as error:
            raise ValueError(
                f"the result cannot be stored: {error.diag.message_primary}"
            ) from error
        _require(kept, lease)
        session.execute("drop_scores", **story)
        session.execute("add_scores", names=list(scores), values=list(scores.values()), **story)


def fail(
    session: Session, lease: Lease, error: BaseException | str, *, permanent: bool = False
) -> None:
    """Count a failure: the task waits, the longer the more often it failed, or for good.

    Raises:
        LeaseLost: the task is no longer this worker's.
    """
    counted = session.execute(
        "fail_task",
        state="failed" if permanent else "waiting",
        error=error_text(error),
        wait=back_off(lease.attempts + 1),
        **_claim(lease),
    )
    _require(counted, lease)


def retry(session: Session, name: str, story_ids: Sequence[int] | None = None) -> int:
    """Let failed tasks be handed out again at once, those that failed for good too.

    Args:
        session: any.
        name: name of the task.
        story_ids: of these stories only, or of the survivors that they lead to; None for all.

    Returns:
        number of tasks.
    """
    ids = None if story_ids is None else list(story_ids)
    return session.execute("retry_tasks", name=checked_name(name), story_ids=ids)


def list_tasks(session: Session, name: str | None, state: str | None, limit: int) -> list[Task]:
    """Return tasks with their state, those of the youngest stories first; None for any name or state."""
    return session.records(Task, "list_tasks", name=name, state=state, most=limit)


def scores(session: Session, story_ids: Sequence[int]) -> dict[int, dict[str, float]]:
    """Return the scores of stories by name."""
    found: dict[int, dict[str, float]] = {story_id: {} for story_id in story_ids}
    for row in session.rows("story_scores", story_ids=list(story_ids)):
        found[row.story_id][row.name] = row.value
    return found


def _default_since(session: Session) -> datetime | None:
    latest: datetime | None = session.value("latest_story")
    return None if latest is None else latest - DEFAULT_SPAN


def _claim(lease: Lease) -> dict[str, object]:
    return {"name": lease.task, "story_id": lease.story_id, "token": lease.token}


def _require(changed: int, lease: Lease) -> None:
    if not changed:
        raise LeaseLost(
            f"the task {lease.task} of story {lease.story_id} is no longer this worker's: its lease "
            "ran out and another took over, or it was completed before; ask for a longer lease"
        )
