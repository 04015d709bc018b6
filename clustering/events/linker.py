"""Brings events up to date with the stories that changed, with the database doing the vector work.

One transaction for some hundred stories: a process killed in the middle leaves no trace of them, and
the next run does them again. What is up to date is known by the number of the last change.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clustering.events.linking import ClusterPair, agreements

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from clustering.store.session import Session

# A story of one article says too little of an affair: one in three has no other near it by chance.
LEAST_ARTICLES = 2
# Changed stories brought up to date in one transaction.
BATCH_STORIES = 500


@dataclass(frozen=True, slots=True)
class EventRules:
    """What decides whether stories tell one affair; see `Calibration`.

    Attributes:
        link: least mean score of two clusters to be one event.
        gap: longest time between two stories that are compared.
        time_penalty: score lost per unit of log(1 + days apart).
        neighbours: how many nearest stories are looked at.
    """

    link: float
    gap: timedelta
    time_penalty: float
    neighbours: int


@dataclass(frozen=True, slots=True)
class Linker:
    """Links stories into events.

    Attributes:
        session: bound to the space, outside a transaction.
        rules: threshold, window and penalty.
        run_id: run that the decisions are recorded under.
    """

    session: Session
    rules: EventRules
    run_id: int

    def run(self) -> Counter[str]:
        """Bring events up to date with every story that changed.

        Returns:
            number of `events` made, of stories `linked` and of `event_merges`.
        """
        counts = Counter[str]()
        while rows := self.session.rows("changed_stories", most=BATCH_STORIES):
            with self.session.transaction():
                self._catch_up(rows, counts)
                self.session.execute("note_event_progress", change=rows[-1].change)
        return counts

    def _catch_up(self, rows: list[Any], counts: Counter[str]) -> None:
        absorbed = [row.id for row in rows if row.merged_into is not None]
        if absorbed:
            self._follow(absorbed, counts)
        stories = sorted({row.id for row in rows} | {row.merged_into or row.id for row in rows})
        self.session.execute("refresh_events", story_ids=stories)
        touched = self._clusters(stories)
        while agreed := self._agreements(touched):
            # What found no partner stays: its nearest may have gone to another, and the next be near.
            touched -= {cluster for pair in agreed for cluster in (pair.a, pair.b)}
            touched |= {self._join(pair, counts) for pair in agreed}

    def _follow(self, absorbed: list[int], counts: Counter[str]) -> None:
        """Let survivors take the places of absorbed stories; an event left without stories goes with its last."""
        self.session.execute("inherit_events", absorbed_ids=absorbed, run_id=self.run_id)
        for row in self.session.rows("emptied_events", absorbed_ids=absorbed):
            self._merge(row.absorbed_id, row.survivor_id, row.score, row.threshold)
            counts["event_merges"] += 1

    def _clusters(self, story_ids: list[int]) -> set[int]:
        rows = self.session.rows("clusters_of", story_ids=story_ids, least=LEAST_ARTICLES)
        return {row.cluster for row in rows}

    def _agreements(self, touched: set[int]) -> list[ClusterPair]:
        """Return what becomes one: pairs that touch a changed cluster and are mutually nearest."""
        pairs = self._near(touched)
        around = {pair.b for pair in pairs if pair.score >= self.rules.link} - touched
        return agreements(pairs + self._near(around), self.rules.link)

    def _near(self, clusters: Iterable[int]) -> list[ClusterPair]:
        wanted = sorted(clusters)
        if not wanted:
            return []
        return self.session.records(
            ClusterPair,
            "near_clusters",
            clusters=wanted,
            window=self.rules.gap,
            penalty=self.rules.time_penalty,
            # The nearest of all is the story itself.
            most=self.rules.neighbours + 1,
            least=LEAST_ARTICLES,
        )

    def _join(self, pair: ClusterPair, counts: Counter[str]) -> int:
        """Make two clusters one event; returns its id."""
        if pair.a > 0:
            # The younger event, of the higher id, becomes part of the older one.
            self._merge(pair.b, pair.a, pair.score, self.rules.link)
            counts["event_merges"] += 1
            event_id = pair.a
        elif pair.b > 0:
            event_id = pair.b
            self._add(pair.a_story, event_id, pair, pair.b_story)
            counts["linked"] += 1
        else:
            stories = [pair.a_story, pair.b_story]
            event_id = int(self.session.value("add_event", story_ids=stories, run_id=self.run_id))
            self._add(pair.a_story, event_id, pair, pair.b_story)
            self._add(pair.b_story, event_id, pair, pair.a_story)
            counts["events"] += 1
            counts["linked"] += 2
        self.session.execute("refresh_events", story_ids=[pair.a_story, pair.b_story])
        return event_id

    def _add(self, story_id: int, event_id: int, pair: ClusterPair, nearest_id: int) -> None:
        self.session.execute(
            "join_event",
            story_id=story_id,
            event_id=event_id,
            score=pair.score,
            threshold=self.rules.link,
            nearest_id=nearest_id,
            run_id=self.run_id,
        )

    def _merge(self, absorbed_id: int, survivor_id: int, score: float, threshold: float) -> None:
        """Let one event become part of another: its stories move, and its id leads there."""
        both = {"absorbed_id": absorbed_id, "survivor_id": survivor_id}
        reason = {"score": score, "threshold": threshold, "run_id": self.run_id}
        self.session.execute("merge_events", **both, **reason)
        self.session.execute("redirect_events", **both)
        self.session.execute("move_stories", **both)
