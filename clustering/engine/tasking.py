"""Work for what comes after the stories: scoring, rewriting, translating, publishing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clustering.engine.opened import Opened
from clustering.stories.reading import Story, find_stories, whole_stories
from clustering.tasks import leases
from clustering.tasks.changes import DEFAULT_POLL_SECONDS, changes_after, follow, latest_change
from clustering.tasks.policy import DEFAULT_LEASE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from clustering.store.session import Session
    from clustering.tasks.changes import StoryChange
    from clustering.tasks.leases import Lease, Task


@dataclass(frozen=True, slots=True, eq=False)
class LeasedStory(Story):
    """A story with a task to be done.

    Attributes:
        lease: what `complete` and `fail` go by; also tells how often the task was tried, until when
            it is this worker's, what changed since it was last done and the result of that.
        absorbed_results: earlier results for stories that became part of this one, by their old id.
    """

    lease: Lease
    absorbed_results: Mapping[int, Any]


class Tasking(Opened):
    """The part of the engine that hands out tasks. None of it waits for a run, or makes one wait."""

    def pending(  # noqa: PLR0913 - one keyword for each thing a worker may ask
        self,
        task: str,
        *,
        limit: int = 50,
        min_size: int = 2,
        languages: Sequence[str] | None = None,
        since: datetime | None = None,
        lease: timedelta = DEFAULT_LEASE,
    ) -> list[LeasedStory]:
        """Lease the latest stories that wait for a task: new ones, changed ones, and failures to be tried again.

        Several workers may ask at once: each story goes to one of them, and to another only when
        the lease has run out. A done story waits again when it grew by half, lost a third, has
        a new language or another headline article, or absorbed another story.

        Args:
            task: name of the task; each keeps its own state.
            limit: at most so many.
            min_size: least number of articles, duplicates not counted.
            languages: stories with at least one of these BCP 47 tags; None for any.
            since: stories whose latest article is older are left out; None for seven days before
                the latest story.
            lease: how long nobody else gets them.

        Raises:
            ValueError: the name cannot be one of a task, or the lease is shorter than a second.
        """
        session = self._database.session
        wanted = leases.Wanted(limit, min_size, languages, since, lease)
        leased = {found.story_id: found for found in leases.lease_tasks(session, task, wanted)}
        stories = _leased_stories(session, task, leased)
        for story_id in leased.keys() - {story.id for story in stories}:
            leases.give_back(session, leased[story_id])
        return stories

    def complete(self, task: str, story: LeasedStory, *, result: Mapping[str, object]) -> None:
        """Keep a task's result; every number at its top can be sorted by.

        A number under the task's own name is the score of that name, any other is `task.key`.

        Raises:
            LeaseLost: the lease ran out and another worker took over.
            TypeError: the result is no JSON.
            ValueError: `story` was leased for another task, or the result cannot be stored.
        """
        leases.complete(self._database.session, _lease_of(task, story), result)

    def fail(
        self,
        task: str,
        story: LeasedStory,
        error: BaseException | str,
        *,
        permanent: bool = False,
    ) -> None:
        """Give a task up: for a minute, longer each time it fails again, or until `retry` where permanent.

        Raises:
            LeaseLost: the lease ran out and another worker took over.
            ValueError: `story` was leased for another task.
        """
        leases.fail(self._database.session, _lease_of(task, story), error, permanent=permanent)

    def retry(self, task: str, story_ids: Sequence[int] | None = None) -> int:
        """Let failed tasks be handed out again at once, those that failed for good too.

        Args:
            task: name of the task.
            story_ids: of these stories only, or of the survivors that they lead to; None for all.

        Returns:
            number of tasks.

        Raises:
            ValueError: the name cannot be one of a task.
        """
        return leases.retry(self._database.session, task, story_ids)

    def tasks(
        self, task: str | None = None, *, state: str | None = None, limit: int = 50
    ) -> list[Task]:
        """Return tasks with their state, those of the youngest stories first.

        Args:
            task: of this name only.
            state: `waiting`, `leased`, `done` or `failed` only.
            limit: at most so many.
        """
        return leases.list_tasks(self._database.session, task, state, limit)

    def changes(self, after: int = 0) -> Iterator[StoryChange]:
        """Yield the stories that changed after a change, in order, each once as it stands now.

        Args:
            after: `change` of the last one that is known; 0 for all stories there are.
        """
        return changes_after(self._database.session, after)

    def subscribe(
        self,
        after: int | None = None,
        *,
        poll_seconds: float = DEFAULT_POLL_SECONDS,
        warn: Callable[[str], None] = warnings.warn,
    ) -> Iterator[StoryChange]:
        """Yield stories as they appear and change, for ever.

        The server tells on a direct connection. Behind a pooler nothing is told, so it is asked.

        Args:
            after: `change` of the last one that is known; None for what comes from now on.
            poll_seconds: how often to ask where the server cannot tell.
            warn: is told that it has to ask.
        """
        session = self._database.session
        known = latest_change(session) if after is None else after
        return follow(session, known, poll_seconds, warn)


def _leased_stories(session: Session, task: str, leased: Mapping[int, Lease]) -> list[LeasedStory]:
    with session.transaction():
        session.execute("read_one_state")
        found = list(whole_stories(session, find_stories(session, list(leased))))
        absorbed = leases.results_of_absorbed(session, task, list(leased))
    return [_with_lease(story, leased[story.id], absorbed.get(story.id, {})) for story in found]


def _with_lease(story: Story, lease: Lease, absorbed: Mapping[int, Any]) -> LeasedStory:
    values = {name: getattr(story, name) for name in Story.__slots__}
    return LeasedStory(**values, lease=lease, absorbed_results=absorbed)


def _lease_of(task: str, story: LeasedStory) -> Lease:
    if story.lease.task != task:
        raise ValueError(f"story {story.id} was leased for {story.lease.task}, not for {task}")
    return story.lease
