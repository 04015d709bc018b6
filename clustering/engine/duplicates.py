"""What was folded and what was flagged: reading it, taking it back, deciding it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.dedup.links import LinkFilter, find_links, retract
from clustering.dedup.review import Judgement, judge, queued_pairs
from clustering.engine.opened import Opened
from clustering.errors import InvalidInput, NotFoundError
from clustering.stories.refresh import recount_sources

if TYPE_CHECKING:
    from clustering.dedup.links import DuplicateLink
    from clustering.dedup.review import FlaggedPair, Verdict


@dataclass(frozen=True, slots=True)
class Undone:
    """Links that were taken back, and the run that did it."""

    run_id: int
    links: tuple[DuplicateLink, ...]


class Duplicates(Opened):
    """The part of the engine that answers for duplicates."""

    def duplicates(
        self, wanted: LinkFilter | None = None, *, limit: int | None = None
    ) -> list[DuplicateLink]:
        """Return links from duplicates to their canonical articles, the latest first.

        Args:
            wanted: which links; None means all that hold.
            limit: at most so many; None for all.
        """
        return find_links(self._database.session, wanted or LinkFilter(), limit)

    def undo_duplicates(self, wanted: LinkFilter) -> Undone:
        """Take back the links that `duplicates` returns for a filter.

        Each duplicate is an article of its own again: the next run encodes and places it. Its stage
        never folds the pair again, neither directly nor through a third article; another stage may,
        but `simhash` not after `content`.

        Raises:
            InvalidInput: the filter has no condition, or asks for links that were taken back.
            NotFoundError: no link meets it.
            RunLocked: another run works on the database.
        """
        if wanted.is_open() or wanted.taken_back:
            raise InvalidInput("say which links to take back: by article, stage, run or time")
        with self._working("duplicates") as run, run.session.transaction():
            links = find_links(run.session, wanted)
            if not links:
                raise NotFoundError(
                    "no link is meant; `stories duplicates list` shows those there are"
                )
            recount_sources(run.session, retract(run.session, links, run.id, lapsed=False))
            run.counts["undone"] += len(links)
            return Undone(run.id, tuple(links))

    def undo_pair(self, a_id: int, b_id: int) -> Undone:
        """Take back the link between two articles, whichever of them is the duplicate.

        Raises:
            NotFoundError: neither is folded into the other.
            RunLocked: another run works on the database.
        """
        links = self.duplicates(LinkFilter(article_ids=[a_id, b_id]))
        for link in links:
            if {link.article_id, link.canonical_id} == {a_id, b_id}:
                return self.undo_duplicates(LinkFilter(link_ids=[link.id]))
        into = {link.article_id: link.canonical_id for link in links}
        if a_id in into and into[a_id] == into.get(b_id):
            raise NotFoundError(
                f"{a_id} and {b_id} are both folded into {into[a_id]}; to part them: "
                f"`stories review decide {a_id} {b_id} different`"
            )
        raise NotFoundError(f"neither of {a_id} and {b_id} is folded into the other")

    def review(self, *, decided: bool = False, limit: int | None = None) -> list[FlaggedPair]:
        """Return pairs of articles that look alike and were left to a person, the latest first.

        Args:
            decided: those that somebody decided, instead of those that wait.
            limit: at most so many; None for all.
        """
        return queued_pairs(self._database.session, decided=decided, most=limit)

    def judge(self, a_id: int, b_id: int, verdict: Verdict, *, by: str) -> None:
        """Say whether two articles report one event; a later verdict replaces an earlier one.

        `different` wins over every stage: the two are parted where they are folded together, and no
        chain brings them together again. `same` is a label and folds nothing.

        Args:
            a_id: an article, flagged or not.
            b_id: another.
            verdict: `same` or `different`.
            by: who says so.

        Raises:
            InvalidInput: the two are one, the verdict is none, or nobody is named.
            NotFoundError: there is no such article.
            RunLocked: another run works on the database.
        """
        with self._working("review") as run, run.session.transaction():
            bereft = judge(run.session, Judgement(a_id, b_id, verdict, by), lambda: run.id)
            recount_sources(run.session, bereft)
