"""Taking decisions back, and taking them oneself: undo, move, split, merge."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.dedup.links import LinkFilter, find_links, retract
from clustering.engine.opened import Opened
from clustering.errors import BuiltUpon, InvalidInput, NotFoundError
from clustering.events.undo import take_events_back, unravel_events
from clustering.stories.editing import Editor
from clustering.stories.refresh import recount_sources
from clustering.stories.undo import take_back, take_judgements_back, unravel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clustering.engine.runs import Run
    from clustering.events.undo import UnravelledEvents
    from clustering.store.session import Session
    from clustering.stories.undo import Unravelled

_UNDONE = frozenset({"ingest", "cluster", "run", "replay", "move", "split", "merge"})
_ELSEWHERE = {
    "duplicates": "the next run places the articles; no stage folds them again",
    "review": "decide the pair anew with `stories review decide`",
    "undo": "`stories cluster` places the articles again",
}


@dataclass(frozen=True, slots=True)
class Edit:
    """What an editor decided.

    Attributes:
        run_id: run that it is recorded under; `undo` takes it back.
        story_id: the story that the articles are in now.
        by: who decided.
    """

    run_id: int
    story_id: int
    by: str


@dataclass(frozen=True, slots=True)
class Undoing:
    """What was taken back.

    Attributes:
        run_id: run that took it back.
        undone: the run that is as if it had not been.
        cascaded: later runs that lost what they had built on it, the latest first.
        counts: `placements`, `merges`, `links` of duplicates, `event_links`, `event_merges` and
            `judgements` that were taken back; those that are none are left out.
    """

    run_id: int
    undone: int
    cascaded: tuple[int, ...]
    counts: Mapping[str, int]


class Editing(Opened):
    """The part of the engine that corrects what runs decided. Each call is a run of its own, or leaves nothing."""

    def move(self, article_id: int, story_id: int, *, by: str) -> Edit:
        """Put an article into a story, as a member that no pass takes away.

        It is judged different from the members of the story that it was in, so that the two stories
        are never merged by a pass.

        Args:
            article_id: the article, whether or not it is in a story.
            story_id: the story; the id of an absorbed one leads to its survivor.
            by: who says so.

        Raises:
            NotFoundError: there is no such article or story.
            InvalidInput: the article is a duplicate or not encoded, or nobody is named.
            RunLocked: another run works on the database.
        """
        with self._editing("move", by) as (editor, _):
            return Edit(editor.run_id, editor.move(article_id, story_id), by)

    def split(self, story_id: int, article_ids: Sequence[int], *, by: str) -> Edit:
        """Make a story of some articles of another; no pass brings the two together again.

        Args:
            story_id: the story that they leave; the id of an absorbed one leads to its survivor.
            article_ids: the articles that leave; at least one member must stay.
            by: who says so.

        Returns:
            the edit, with the id of the new story.

        Raises:
            NotFoundError: there is no such article or story.
            InvalidInput: an article is a duplicate or not in the story, none is named or none would
                stay, or nobody is named.
            RunLocked: another run works on the database.
        """
        with self._editing("split", by) as (editor, _):
            return Edit(editor.run_id, editor.split(story_id, article_ids), by)

    def merge(self, survivor_id: int, absorbed_id: int, *, by: str) -> Edit:
        """Let one story become part of another, whose id both have from then on.

        Verdicts that held their articles apart are replaced.

        Args:
            survivor_id: the story that stays.
            absorbed_id: the story that becomes part of it.
            by: who says so.

        Raises:
            NotFoundError: there is no such story.
            InvalidInput: the two are one already, one has no articles, or nobody is named.
            RunLocked: another run works on the database.
        """
        with self._editing("merge", by) as (editor, _):
            return Edit(editor.run_id, editor.merge(survivor_id, absorbed_id), by)

    def undo(self, run_id: int, *, by: str, cascade: bool = False) -> Undoing:
        """Take everything back that a run decided, as if it had not been.

        Placements, new stories, merges, links of duplicates, events and an editor's judgements go;
        what held before is in force again, and articles that nothing was decided of before wait for
        the next run. Articles, their edits and their vectors stay.

        Args:
            run_id: the run.
            by: who says so.
            cascade: take back too what later runs decided about the same articles and stories.

        Raises:
            BuiltUpon: later runs did, and `cascade` is not set.
            NotFoundError: there is no such run.
            InvalidInput: it was undone before, is of a kind that is not taken back so, or nobody is
                named.
            RunLocked: another run works on the database.
        """
        with self._editing("undo", by) as (editor, run):
            session = run.session
            _require_undoable(session, run_id, editor.run_id)
            gone = unravel(session, run_id)
            events = unravel_events(session, run_id, gone.stories)
            later = _later(run_id, gone, events)
            if later and not cascade:
                raise BuiltUpon(_refusal(run_id, later))
            take_events_back(session, events, editor.run_id)
            take_back(session, gone, editor.run_id, self.thresholds.windows)
            links = _take_links_back(session, run_id, editor.run_id)
            edits = _edits(session, run_id, gone)
            judgements = take_judgements_back(session, edits, editor.run_id)
            session.execute("note_undone", run_id=run_id, undo_run_id=editor.run_id)
            found = {**_counts(gone, events), "links": links, "judgements": judgements}
            counts = {name: count for name, count in found.items() if count}
            run.counts.update(counts)
            return Undoing(editor.run_id, run_id, tuple(sorted(later, reverse=True)), counts)

    @contextmanager
    def _editing(self, command: str, by: str) -> Iterator[tuple[Editor, Run]]:
        """Register a run in a person's name; one transaction, which leaves nothing where it fails."""
        if not by.strip():
            raise InvalidInput("an edit needs the name of who makes it")
        with self._working(command) as run, run.session.transaction():
            run.session.execute("sign_run", run_id=run.id, editor=by)
            yield Editor(run.session, self.thresholds.windows, run.id, by), run


def _require_undoable(session: Session, run_id: int, own_id: int) -> None:
    rows = session.rows("run_to_undo", run_id=run_id)
    if not rows or run_id == own_id:
        raise NotFoundError(f"there is no run {run_id}; `stories stats --json` has the latest")
    (found,) = rows
    if found.undone_by is not None:
        raise InvalidInput(f"run {run_id} was undone by run {found.undone_by}")
    if found.command not in _UNDONE:
        hint = _ELSEWHERE.get(found.command, "it decided nothing about stories")
        raise InvalidInput(f"run {run_id} ({found.command}) cannot be undone: {hint}")


def _later(run_id: int, gone: Unravelled, events: UnravelledEvents) -> Counter[int]:
    """Count the decisions of each later run among those that go."""
    runs = [d.run_id for d in gone.decisions] + [d.run_id for d in events.decisions]
    return Counter(other for other in runs if other != run_id)


def _refusal(run_id: int, later: Mapping[int, int]) -> str:
    named = ", ".join(
        f"run {other} ({count} decision{'s' if count > 1 else ''})"
        for other, count in sorted(later.items(), reverse=True)
    )
    return f"later runs built on run {run_id}: {named}; --cascade takes that back too"


def _edits(session: Session, run_id: int, gone: Unravelled) -> list[int]:
    """Return the edits whose own decisions go. What an edit merely let go is no judgement."""
    deciding = {decision.run_id for decision in gone.decisions if decision.story_id is not None}
    rows = session.rows("edits_among", run_ids=sorted(deciding | {run_id}))
    return [row.id for row in rows]


def _take_links_back(session: Session, run_id: int, undo_run_id: int) -> int:
    """Part what the run folded; its stages may fold it again, as if they had not yet seen it."""
    links = find_links(session, LinkFilter(run_id=run_id))
    if links:
        recount_sources(session, retract(session, links, undo_run_id, lapsed=True))
    return len(links)


def _counts(gone: Unravelled, events: UnravelledEvents) -> dict[str, int]:
    merges = sum(decision.is_merge for decision in gone.decisions)
    return {
        "placements": len(gone.decisions) - merges,
        "merges": merges,
        "event_links": len(events.stories),
        "event_merges": len(events.absorbed),
    }
