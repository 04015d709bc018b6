"""What editors decide: an article moved, a story split, two stories merged.

Each is kept as judgements about pairs of articles, which no pass goes against: what was parted is neither
matched, discovered nor merged into one story again, and what an editor placed stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from clustering.errors import InvalidInput, NotFoundError
from clustering.stories.decisions import record_merges, record_placements
from clustering.stories.placement import EDITOR, Placement
from clustering.stories.reading import find_story
from clustering.stories.refresh import refresh

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from clustering.store.session import Session
    from clustering.stories.calibration import Calibration


class Placed(NamedTuple):
    """An article that is to be edited: what it is folded into, whether it is encoded, and where it is."""

    id: int
    event_time: datetime
    canonical_id: int | None
    is_encoded: bool
    story_id: int | None


@dataclass(frozen=True, slots=True)
class Editor:
    """Carries out what an editor decides.

    Attributes:
        session: bound to the space, inside a transaction.
        calibration: says how many members a centroid averages.
        run_id: run that the decisions are recorded under.
        by: who decides.
    """

    session: Session
    calibration: Calibration
    run_id: int
    by: str

    def move(self, article_id: int, story_id: int) -> int:
        """Put an article into a story, apart from the members of the story that it was in.

        Returns:
            id of the story; of an absorbed one its survivor's.

        Raises:
            NotFoundError: there is no such article or story.
            InvalidInput: the article is a duplicate, or not encoded.
        """
        story = find_story(self.session, story_id)
        (article,) = editable(self.session, [article_id])
        others = set(articles_of(self.session, story.id)) - {article_id}
        if article.story_id not in (None, story.id):
            left = members_of(self.session, article.story_id)
            self._part([article_id], [member for member in left if member != article_id])
        self._place([article_id], story.id)
        self._join([article_id], others)
        if story.headline_id in others:
            self._judge([_pair(article_id, story.headline_id)], "same")
        settle(self.session, {story.id, article.story_id}, self.calibration, self.run_id)
        return story.id

    def split(self, story_id: int, article_ids: Sequence[int]) -> int:
        """Make a story of some articles of another, apart from the members that stay.

        Returns:
            id of the new story.

        Raises:
            NotFoundError: there is no such article or story.
            InvalidInput: an article is a duplicate or not in the story, or no member would stay.
        """
        story = find_story(self.session, story_id)
        ids = sorted(set(article_ids))
        leaving = editable(self.session, ids)
        _require_inside(leaving, story.id)
        staying = [member for member in members_of(self.session, story.id) if member not in ids]
        if not staying:
            raise InvalidInput(f"no member of story {story.id} would stay in it; leave one out")
        made = self._make_story(leaving)
        self._part(ids, staying)
        self._place(ids, made)
        settle(self.session, {story.id, made}, self.calibration, self.run_id)
        return made

    def merge(self, survivor_id: int, absorbed_id: int) -> int:
        """Let one story become part of another.

        Returns:
            id of the survivor.

        Raises:
            NotFoundError: there is no such story.
            InvalidInput: the two are one already, or one has no articles.
        """
        survivor, absorbed = (find_story(self.session, i) for i in (survivor_id, absorbed_id))
        if survivor.id == absorbed.id:
            raise InvalidInput(f"{survivor_id} and {absorbed_id} are both story {survivor.id}")
        for story in (survivor, absorbed):
            if not story.size:
                raise InvalidInput(f"story {story.id} has no articles any more")
        self._join(*(articles_of(self.session, story.id) for story in (survivor, absorbed)))
        self._judge([_pair(survivor.headline_id, absorbed.headline_id)], "same")
        record_merges(self.session, [(absorbed.id, survivor.id, None)], None, self.run_id)
        settle(self.session, {survivor.id}, self.calibration, self.run_id)
        return survivor.id

    def _make_story(self, articles: Sequence[Placed]) -> int:
        own = [article.event_time for article in articles]
        made = self.session.value(
            "add_stories",
            first_times=[min(own)],
            latest_times=[max(own)],
            headline_ids=[articles[0].id],
            run_id=self.run_id,
        )
        return int(made)

    def _place(self, article_ids: Iterable[int], story_id: int) -> None:
        decided = [Placement(a, story_id, EDITOR, None, None, None) for a in article_ids]
        record_placements(self.session, decided, self.run_id)

    def _part(self, article_ids: Iterable[int], other_ids: Iterable[int]) -> None:
        others = list(other_ids)
        self._judge([_pair(a, b) for a in article_ids for b in others], "different")

    def _join(self, article_ids: Iterable[int], other_ids: Iterable[int]) -> None:
        """Take verdicts back that hold apart what is now one story."""
        ids = {"article_ids": sorted(article_ids), "other_ids": sorted(other_ids)}
        self._judge([tuple(row) for row in self.session.rows("different_between", **ids)], "same")

    def _judge(self, pairs: Sequence[tuple[int, ...]], verdict: str) -> None:
        if pairs:
            self.session.execute(
                "judge_pairs",
                a_ids=[a for a, _ in pairs],
                b_ids=[b for _, b in pairs],
                verdict=verdict,
                judged_by=self.by,
                run_id=self.run_id,
            )


def editable(session: Session, article_ids: Sequence[int]) -> list[Placed]:
    """Return articles that an editor may place, in the order of their ids.

    Raises:
        NotFoundError: there is no such article.
        InvalidInput: none is named, or one is a duplicate or not encoded.
    """
    if not article_ids:
        raise InvalidInput("name at least one article")
    found = {
        row.id: row
        for row in session.records(Placed, "articles_to_edit", article_ids=list(article_ids))
    }
    for article_id in article_ids:
        if article_id not in found:
            raise NotFoundError(
                f"there is no article {article_id}; `stories show` names those of a story"
            )
        _require_editable(found[article_id])
    return [found[article_id] for article_id in sorted(found)]


def articles_of(session: Session, story_id: int) -> list[int]:
    """Return the articles of a story, attached ones among them."""
    return [row.article_id for row in session.rows("articles_of", story_id=story_id)]


def members_of(session: Session, story_id: int | None) -> list[int]:
    """Return the members of a story: its articles without those that are only attached to it."""
    rows = session.rows("articles_of", story_id=story_id)
    return [row.article_id for row in rows if row.is_member]


def settle(
    session: Session, story_ids: Iterable[int | None], calibration: Calibration, run_id: int
) -> None:
    """Bring stories up to date whose articles were put elsewhere, also where none is left.

    What was only attached to a story without members waits for the passes again.

    Args:
        session: inside a transaction.
        story_ids: stories that gained or lost articles; absorbed ones and None are passed over.
        calibration: says how many members a centroid averages.
        run_id: run that lets attached articles go.

    Raises:
        InvalidInput: vectors of attached articles were pruned.
    """
    wanted = sorted(story_id for story_id in set(story_ids) if story_id is not None)
    live = [row.id for row in session.rows("live_among", story_ids=wanted)]
    if not live:
        return
    loose = [row.article_id for row in session.rows("without_members", story_ids=live)]
    if loose:
        free = [Placement(article, None, "pending", None, None, None) for article in loose]
        record_placements(session, free, run_id)
        require_vectors(session, loose)
    session.execute("drop_centroids", absorbed_id=live)
    refresh(session, live, calibration)
    session.execute("recount_stories", story_ids=live)


def require_vectors(session: Session, article_ids: Sequence[int]) -> None:
    """Make sure that those of some articles that are in no story can be placed anew.

    Raises:
        InvalidInput: vectors of some were pruned.
    """
    lost = session.value("lost_vectors", article_ids=list(article_ids))
    if lost:
        raise InvalidInput(
            f"the vectors of {lost} articles that this would set free were pruned, so that no pass could "
            "place them; keep more with `stories db prune --keep`, or bring them back with "
            "`stories space backfill NAME`"
        )


def _pair(a: int, b: int) -> tuple[int, int]:
    return min(a, b), max(a, b)


def _require_editable(article: Placed) -> None:
    if article.canonical_id is not None:
        raise InvalidInput(
            f"article {article.id} is folded into {article.canonical_id} and goes where that goes; "
            f"to part them: `stories duplicates undo --article {article.id}`"
        )
    if not article.is_encoded:
        raise InvalidInput(f"article {article.id} is not encoded yet; run `stories cluster` first")


def _require_inside(articles: Iterable[Placed], story_id: int) -> None:
    for article in articles:
        if article.story_id != story_id:
            raise InvalidInput(f"article {article.id} is not in story {story_id}")
