"""A slow model of what runs and editors decide: one list, read from its beginning for every question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Placed(NamedTuple):
    """An article put into a story by a pass or an editor; into none where `story` is None."""

    run: int
    article: int
    story: int | None
    by: str

    @property
    def stories(self):
        return {self.story} - {None}


class Merged(NamedTuple):
    """A story that became part of another."""

    run: int
    absorbed: int
    survivor: int

    article = None

    @property
    def stories(self):
        return {self.absorbed, self.survivor}


class Linked(NamedTuple):
    """A story put into an event."""

    run: int
    story: int
    event: int

    @property
    def events(self):
        return {self.event}


class Joined(NamedTuple):
    """An event that became part of another."""

    run: int
    absorbed: int
    survivor: int

    story = None

    @property
    def events(self):
        return {self.absorbed, self.survivor}


def root(of, merges):
    """Follow merges, one at a time."""
    into = {merge.absorbed: merge.survivor for merge in merges}
    while of in into:
        of = into[of]
    return of


@dataclass
class Ledger:
    """Everything that was decided and holds, in order."""

    decisions: list = field(default_factory=list)
    about_events: list = field(default_factory=list)
    articles: set[int] = field(default_factory=set)

    def merges(self):
        return [d for d in self.decisions if isinstance(d, Merged)]

    def placement(self, article):
        """The last placement of an article; None where there is none."""
        own = [d for d in self.decisions if isinstance(d, Placed) and d.article == article]
        return own[-1] if own else None

    def story_of(self, article):
        placed = self.placement(article)
        return root(placed.story, self.merges()) if placed and placed.story else None

    def root(self, story):
        return root(story, self.merges())

    def inside(self, story, *, members=False):
        """The articles of a story; without attached ones where only members are meant."""
        return sorted(
            article
            for article in self.articles
            if self.story_of(article) == story
            and not (members and self.placement(article).by == "attach")
        )

    def stories(self):
        return {self.story_of(article) for article in self.articles} - {None}

    def event_of(self, story):
        own = [d for d in self.about_events if isinstance(d, Linked) and d.story == story]
        joined = [d for d in self.about_events if isinstance(d, Joined)]
        return root(own[-1].event, joined) if own else None

    def let_go(self, run):
        """Articles attached to a story without members wait again."""
        for story in self.stories():
            if not self.inside(story, members=True):
                for article in self.inside(story):
                    self.decisions.append(Placed(run, article, None, "pending"))

    def built_on(self, run):
        """What goes with a run: its decisions and later ones about the same, until no more are found."""
        gone, articles, stories = set(), set(), set()
        while True:
            found = {
                d
                for d in self.decisions
                if d.run == run or (d.run > run and (d.article in articles or d.stories & stories))
            }
            if found == gone:
                break
            gone = found
            articles = {d.article for d in gone if isinstance(d, Placed)}
            stories = set().union(*(d.stories for d in gone))
        return gone, self._events_built_on(run, stories)

    def _events_built_on(self, run, stories):
        gone, events = set(), set()
        while True:
            found = {
                d
                for d in self.about_events
                if d.run == run or (d.run > run and (d.story in stories or d.events & events))
            }
            if found == gone:
                return gone
            gone = found
            events = set().union(*(d.events for d in gone))

    def undo(self, run, own_run):
        gone, gone_events = self.built_on(run)
        self.decisions = [d for d in self.decisions if d not in gone]
        self.about_events = [d for d in self.about_events if d not in gone_events]
        self.let_go(own_run)
