"""Taking the decisions of a run about stories back, with all that later runs built on them.

Every placement keeps the run that made it, the earlier placements of the article lie beneath it
(`past_placement`), and the story that an article is in follows from the one chosen for it and the merges
that hold. So a run is taken back by lifting off what it and its successors decided about the same articles
and stories: what then lies on top is what held before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from clustering.stories.editing import require_vectors, settle

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clustering.store.session import Session
    from clustering.stories.calibration import Calibration


class Decision(NamedTuple):
    """A placement of an article, or a merge of two stories (or of two events).

    Attributes:
        run_id: run that decided.
        article_id: the article, or of an event the story, that was placed; None for a merge.
        story_id: where it was placed, None for nowhere; of a merge the absorbed one.
        survivor_id: of a merge the other one.
    """

    run_id: int
    article_id: int | None
    story_id: int | None
    survivor_id: int | None

    @property
    def is_merge(self) -> bool:
        """Whether it is a merge."""
        return self.survivor_id is not None


@dataclass(frozen=True, slots=True)
class Unravelled:
    """What has to go for a run to go.

    Attributes:
        run_id: the run.
        decisions: its own and those built on them, merges among them.
    """

    run_id: int
    decisions: frozenset[Decision]

    @property
    def articles(self) -> list[int]:
        """The articles whose placements go, sorted."""
        return sorted({d.article_id for d in self.decisions if d.article_id is not None})

    @property
    def stories(self) -> list[int]:
        """The stories that the decisions are about, sorted."""
        return sorted(_stories(self.decisions))

    @property
    def absorbed(self) -> list[int]:
        """The stories whose merges go, sorted."""
        return sorted({d.story_id for d in self.decisions if d.is_merge and d.story_id is not None})


def unravel(session: Session, run_id: int) -> Unravelled:
    """Return the decisions of a run and those of later runs that are about the same articles and stories."""
    fresh = set(session.records(Decision, "decisions_of_run", run_id=run_id))
    found: set[Decision] = set()
    articles: set[int] = set()
    stories: set[int] = set()
    while fresh:
        found |= fresh
        new_articles = {d.article_id for d in fresh if d.article_id is not None} - articles
        new_stories = _stories(fresh) - stories
        articles |= new_articles
        stories |= new_stories
        about = session.records(
            Decision,
            "decisions_about",
            article_ids=sorted(new_articles),
            story_ids=sorted(new_stories),
            run_id=run_id,
        )
        fresh = set(about) - found
    return Unravelled(run_id, frozenset(found))


def take_back(
    session: Session, gone: Unravelled, undo_run_id: int, calibration: Calibration
) -> None:
    """Bring back what held before a run.

    Articles that nothing was decided of before wait for the passes again. Stories that nothing is left
    of stay, without articles: their ids go to no other.

    Args:
        session: bound to the space, inside a transaction.
        gone: what is taken back.
        undo_run_id: run that takes it back.
        calibration: says how many members a centroid averages.

    Raises:
        InvalidInput: vectors of articles that nothing was decided of before were pruned.
    """
    if not gone.decisions:  # and perhaps no space that a centroid could be in
        return
    articles = gone.articles
    family = [row.id for row in session.rows("story_families", story_ids=gone.stories)]
    both = {"article_ids": articles, "run_id": gone.run_id}
    session.execute("keep_undone_placements", **both, undo_run_id=undo_run_id)
    session.execute("restore_placements", **both)
    require_vectors(session, articles)
    session.execute("forget_past_placements", article_ids=articles)
    session.execute("take_merges_back", absorbed_ids=gone.absorbed, undo_run_id=undo_run_id)
    session.execute("redirect_again", story_ids=family)
    session.execute("regroup_articles", story_ids=family, article_ids=articles)
    now = {row.story_id for row in session.rows("stories_of_articles", article_ids=articles)}
    session.execute("drop_centroids", absorbed_id=family)
    settle(session, now.union(family), calibration, undo_run_id)


def take_judgements_back(session: Session, run_ids: Iterable[int], undo_run_id: int) -> int:
    """Forget the judgements of edits; returns how many there were."""
    ids = sorted(run_ids)
    gone = session.rows("take_judgements_back", run_ids=ids, undo_run_id=undo_run_id)
    session.execute("bring_judgements_back", run_ids=ids)
    return len(gone)


def _stories(decisions: Iterable[Decision]) -> set[int]:
    named = {story for d in decisions for story in (d.story_id, d.survivor_id)}
    return {story for story in named if story is not None}
