"""Random sequences of ingest, run, undo, move, split and merge against a slow model in memory.

After every step the invariants of the architecture hold: one story for an article, and a duplicate in that
of its canonical one (1); ids keep meaning their story (2); every decision says run, pass and threshold, and
undoing it restores what was before (3); a run with nothing new changes no row (4); the order inside a batch
does not matter (8).
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from embedding_files import LETTERS
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from ledger import Joined, Ledger, Linked, Merged, Placed
from space_worlds import START, STRICT, copy_database, seen, small_model, write_calibration

from clustering import Article, Engine
from clustering.errors import BuiltUpon
from clustering.store.database import drop_database

# Loose enough for texts with a word in common to meet now and then.
LOOSE = replace(
    STRICT,
    match=0.75,
    attach=0.5,
    link=0.75,
    merge=0.8,
    event_link=0.3,
    chain_slack=0.05,
)
TOPICS = 4
WORDS = [
    ["".join(random.Random(t * 9 + w).choices(LETTERS, k=4)) for w in range(5)]
    for t in range(TOPICS)
]
FIELDS = "article_id, story_id, placed_in, pass AS pass_name, score, threshold, run_id"


def written(number, topic, changed, hours, copy_of=None):
    """An article about a topic, with some of its five words exchanged; a copy has another's address."""
    words = list(WORDS[topic])
    for place in range(changed):
        words[place] = "".join(random.Random(1000 + number * 7 + place).choices(LETTERS, k=4))
    return Article(
        id=f"a{number}",
        source=f"wire {number % 3}",
        url=f"https://example.org/{number if copy_of is None else copy_of}",
        title=" ".join(words),
        language=("en", "de")[number % 2],
        published_at=START + timedelta(hours=hours, minutes=number % 60, seconds=number),
    )


class Desk:
    """An engine, and what it is asked to do in terms of the feeds' own ids, so that a twin can be asked too."""

    def __init__(self, engine, drop):
        self.engine = engine
        self.drop = drop

    def close(self):
        self.engine.close()
        self.drop()

    def sql(self, text, *values):
        cursor = self.engine._database.session.connection.execute(text, values or None)
        return cursor.fetchall() if cursor.description else []

    def id_of(self, guid):
        return self.sql("SELECT id FROM article WHERE guid = %s", guid)[0][0]

    def guid_of(self, article):
        return self.sql("SELECT guid FROM article WHERE id = %s", article)[0][0]

    def story_of(self, guid):
        return self.sql(
            "SELECT story_id FROM story_article WHERE article_id = %s", self.id_of(guid)
        )[0][0]

    def move(self, guid, target):
        return self.engine.move(self.id_of(guid), self.story_of(target), by="ann")

    def split(self, guids):
        ids = [self.id_of(guid) for guid in guids]
        return self.engine.split(self.story_of(guids[0]), ids, by="ann")

    def merge(self, one, other):
        return self.engine.merge(self.story_of(one), self.story_of(other), by="bob")

    def partition(self):
        found = {}
        for (_, guid), place in self.engine.assignments().items():
            if place.story_id is not None:
                found.setdefault(place.story_id, set()).add(guid)
        return {frozenset(guids) for guids in found.values()}

    def snapshot(self):
        tables = self.sql(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind = 'r' AND n.nspname = 'public' ORDER BY 1"
        )
        return {
            name: sorted(row[0] for row in self.sql(f"SELECT xmin::text || t::text FROM {name} t"))
            for (name,) in tables
        }


class Newsroom(RuleBasedStateMachine):
    """The engine and the ledger, side by side."""

    opened = None  # gives a desk on a fresh database

    def __init__(self):
        super().__init__()
        self.desk = self.opened()
        self.ledger = Ledger()
        self.number = 0
        self.hours = 0
        self.ids = set()  # of stories, ever seen
        self.runs = []  # that may be undone
        self.log = []  # what a twin is asked to do
        self.verdicts = set()  # pairs that an edit parted, with its run

    def teardown(self):
        twin = self.opened()
        try:
            for name, arguments in self.log:
                getattr(self, f"twin_{name}")(twin, *arguments)
            assert twin.partition() == self.desk.partition(), "the order inside a batch matters"
        finally:
            twin.close()
            self.desk.close()

    # What can happen.

    @rule(
        topics=st.lists(
            st.tuples(st.integers(0, TOPICS - 1), st.integers(0, 3), st.booleans()),
            min_size=1,
            max_size=8,
        ),
        later=st.integers(0, 6),
    )
    def ingest(self, topics, later):
        self.hours += later
        batch = []
        for topic, changed, copies in topics:
            self.number += 1
            other = self.number - 1 if copies and self.number > 1 else None
            batch.append(written(self.number, topic, changed, self.hours, other))
        self.log.append(("ingest", [batch]))
        report = self.desk.engine.ingest(batch, first_seen=seen)
        if report.run_id is not None:
            self.runs.append(report.run_id)

    @rule()
    def run(self):
        self.log.append(("run", []))
        report = self.desk.engine.run()
        if report.run_id is not None:
            self.observe(report.run_id)
            self.runs.append(report.run_id)
        before = self.desk.snapshot()
        assert self.desk.engine.run().run_id is None
        assert self.desk.snapshot() == before, "a run with nothing new changed rows"

    @precondition(lambda self: self.ledger.stories())
    @rule(data=st.data())
    def move(self, data):
        story = data.draw(st.sampled_from(sorted(self.ledger.stories())))
        article = data.draw(st.sampled_from(sorted(self.ledger.articles)))
        target = self.ledger.inside(story)[0]
        guids = self.desk.guid_of(article), self.desk.guid_of(target)
        left = self.ledger.story_of(article)
        stay = self.ledger.inside(left, members=True) if left not in (None, story) else []
        there = self.ledger.inside(story)
        edit = self.desk.move(*guids)
        assert edit.story_id == story
        self.log.append(("move", guids))
        self.part([article], set(stay) - {article}, edit.run_id)
        self.rejoin([article], there, edit.run_id)
        self.decided(edit.run_id, Placed(edit.run_id, article, story, "editor"))

    @precondition(lambda self: any(len(self.ledger.inside(s)) > 1 for s in self.ledger.stories()))
    @rule(data=st.data())
    def split(self, data):
        large = sorted(s for s in self.ledger.stories() if len(self.ledger.inside(s)) > 1)
        story = data.draw(st.sampled_from(large))
        inside = self.ledger.inside(story)
        leave = sorted(data.draw(st.sets(st.sampled_from(inside), min_size=1)))
        stay = set(self.ledger.inside(story, members=True)) - set(leave)
        if not stay:
            return
        guids = [self.desk.guid_of(article) for article in leave]
        edit = self.desk.split(guids)
        assert edit.story_id not in self.ids, "an id was given out twice"
        self.log.append(("split", [guids]))
        self.part(leave, stay, edit.run_id)
        self.decided(edit.run_id, *(Placed(edit.run_id, a, edit.story_id, "editor") for a in leave))

    @precondition(lambda self: len(self.ledger.stories()) > 1)
    @rule(data=st.data())
    def merge(self, data):
        pair = st.permutations(sorted(self.ledger.stories())).map(lambda order: order[:2])
        survivor, absorbed = data.draw(pair)
        articles = [self.ledger.inside(story) for story in (survivor, absorbed)]
        guids = [self.desk.guid_of(inside[0]) for inside in articles]
        edit = self.desk.merge(*guids)
        assert edit.story_id == survivor
        self.log.append(("merge", guids))
        self.rejoin(*articles, edit.run_id)
        self.decided(edit.run_id, Merged(edit.run_id, absorbed, survivor))

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), latest=st.booleans())
    def undo(self, data, latest):
        run = self.runs[-1] if latest else data.draw(st.sampled_from(self.runs))
        gone, gone_events = self.ledger.built_on(run)
        later = {d.run for d in gone | gone_events} - {run}
        if later:
            before = self.desk.snapshot()
            with pytest.raises(BuiltUpon) as refused:
                self.desk.engine.undo(run, by="ann")
            assert all(f"run {other} (" in str(refused.value) for other in later)
            assert self.desk.snapshot() == before, "a refused undo changed rows"
        undone = self.desk.engine.undo(run, by="ann", cascade=True)
        assert undone.cascaded == tuple(sorted(later, reverse=True))
        self.log.append(("undo", [len(self.log_runs(run))]))
        self.ledger.undo(run, undone.run_id)
        self.runs.remove(run)
        edits = {d.run for d in gone if d.stories} | {run}
        self.verdicts = {verdict for verdict in self.verdicts if verdict[1] not in edits}
        self.note_ids()

    # What must hold.

    @invariant()
    def placements_are_those_of_the_ledger(self):
        rows = {row.article_id: row for row in self.desk.sql(f"SELECT {FIELDS} FROM story_article")}
        for article, row in rows.items():
            placed = self.ledger.placement(article)
            if placed is None:
                assert (row.pass_name, row.story_id, row.run_id) == ("pending", None, None)
                continue
            found = (row.run_id, row.article_id, row.placed_in, row.pass_name)
            assert found == tuple(placed)
            assert row.story_id == self.ledger.story_of(article)
            assert (row.threshold is None) == (placed.by in ("editor", "pending"))
        assert self.ledger.articles <= rows.keys()

    @invariant()
    def a_duplicate_is_in_the_story_of_its_canonical(self):
        rows = self.desk.sql(
            "SELECT d.article_id, d.canonical_id FROM duplicate_link d WHERE d.retracted_at IS NULL"
        )
        placed = {a for (a,) in self.desk.sql("SELECT article_id FROM story_article")}
        where = self.desk.engine.assignments()
        guids = {
            row.id: (row.address, row.guid)
            for row in self.desk.sql(
                "SELECT a.id, f.address, a.guid FROM article a JOIN feed f ON f.id = a.feed_id"
            )
        }
        for duplicate, canonical in rows:
            assert duplicate not in placed
            assert where[guids[duplicate]].story_id == where[guids[canonical]].story_id

    @invariant()
    def ids_keep_meaning_their_story(self):
        for story in sorted(self.ids):
            found = self.desk.engine.story(story)
            assert found.id == self.ledger.root(story)
            assert [article.id for article in found.articles] == sorted(
                self.ledger.inside(found.id), key=self.time_of
            )

    @invariant()
    def what_readers_see_follows_from_the_articles(self):
        for story in self.ledger.stories():
            found = self.desk.engine.story(story)
            articles = found.articles
            assert found.size == len(articles)
            assert found.headline_id in self.ledger.inside(story, members=True)
            assert found.first_time == min(article.event_time for article in articles)
            assert found.latest_time == max(article.event_time for article in articles)
            assert found.languages == tuple(sorted({article.language for article in articles}))
            sources = {copy.source for article in articles for copy in article.duplicates}
            assert found.sources == len(sources | {article.source for article in articles})
            assert found.centroid is not None
        live = self.desk.sql("SELECT id FROM story WHERE merged_into IS NULL AND size > 0")
        assert {row.id for row in live} == self.ledger.stories()

    @invariant()
    def events_are_those_of_the_ledger(self):
        rows = self.desk.sql("SELECT story_id, event_id FROM event_story")
        expected = {d.story for d in self.ledger.about_events if isinstance(d, Linked)}
        assert {row.story_id for row in rows} == expected
        for story, event in rows:
            assert event == self.ledger.event_of(story)

    @invariant()
    def what_editors_parted_is_apart(self):
        for pair, _ in self.verdicts:
            one, other = (self.ledger.story_of(article) for article in sorted(pair))
            assert one is None or one != other

    # Means.

    def observe(self, run):
        """Take down what a run decided, as its rows say."""
        for row in self.desk.sql(f"SELECT {FIELDS} FROM story_article WHERE run_id = %s", run):
            self.ledger.decisions.append(Placed(run, row.article_id, row.placed_in, row.pass_name))
        for row in self.desk.sql("SELECT * FROM story_merge WHERE run_id = %s", run):
            self.ledger.decisions.append(Merged(run, row.absorbed_id, row.survivor_id))
        for row in self.desk.sql("SELECT * FROM event_story WHERE run_id = %s", run):
            self.ledger.about_events.append(Linked(run, row.story_id, row.placed_in))
        for row in self.desk.sql("SELECT * FROM event_merge WHERE run_id = %s", run):
            self.ledger.about_events.append(Joined(run, row.absorbed_id, row.survivor_id))
        self.note_ids()

    def decided(self, run, *decisions):
        self.ledger.decisions += decisions
        self.ledger.let_go(run)
        self.runs.append(run)
        self.note_ids()

    def note_ids(self):
        self.ids |= {row.id for row in self.desk.sql("SELECT id FROM story")}
        rows = self.desk.sql("SELECT article_id FROM story_article")
        self.ledger.articles = {row.article_id for row in rows}

    def part(self, articles, others, run):
        self.verdicts |= {(frozenset((a, b)), run) for a in articles for b in others}

    def rejoin(self, articles, others, run):
        """An edit that brings articles together replaces what was said of them."""
        pairs = {frozenset((a, b)) for a in articles for b in others}
        self.verdicts = {verdict for verdict in self.verdicts if verdict[0] not in pairs}

    def time_of(self, article):
        return self.desk.sql("SELECT event_time, id FROM article WHERE id = %s", article)[0]

    def log_runs(self, run):
        """The runs up to one that is undone, in order: a twin undoes the one of that place."""
        rows = self.desk.sql("SELECT id FROM run WHERE id <= %s ORDER BY id", run)
        return [row.id for row in rows]

    # The twin, whose batches come in another order.

    def twin_ingest(self, twin, batch):
        twin.engine.ingest(batch[::-1], first_seen=seen)

    def twin_run(self, twin):
        twin.engine.run()

    def twin_move(self, twin, *guids):
        twin.move(*guids)

    def twin_split(self, twin, guids):
        twin.split(guids)

    def twin_merge(self, twin, *guids):
        twin.merge(*guids)

    def twin_undo(self, twin, place):
        runs = [row.id for row in twin.sql("SELECT id FROM run ORDER BY id")]
        twin.engine.undo(runs[place - 1], by="ann", cascade=True)


@pytest.fixture
def opened(server, template_database, database_numbers, tmp_path_factory):
    """Open an engine with a small real model on a fresh database; closed and dropped in the end."""
    model = small_model(tmp_path_factory.mktemp("machine"), seed=3)
    thresholds = write_calibration(tmp_path_factory.mktemp("loose") / "loose.toml", LOOSE)
    home = tmp_path_factory.mktemp("home")
    shared = {}

    def fresh():
        name = f"machine_{next(database_numbers)}"
        copy_database(server, template_database, name)
        engine = Engine.open(server.dsn(name), home=home, model=model, calibration=thresholds)
        # The weights are read once.
        engine.__dict__["model"] = shared.setdefault("model", engine.model)
        return Desk(engine, lambda: drop_database(server.dsn("postgres"), name))

    return fresh


@pytest.mark.parametrize("steps", [8, 20])
def test_whatever_happens_the_decisions_are_those_of_the_ledger(opened, steps):
    class Machine(Newsroom):
        pass

    Machine.opened = staticmethod(opened)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=8,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
