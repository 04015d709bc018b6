"""Spaces through the engine: fill beside the one that serves, let one serve, go back, drop."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from command_line import CommandLine
from space_worlds import (
    START,
    copy_database,
    seen,
    small_model,
    story_ids,
    stream,
    vectors,
    write_calibration,
)

from clustering import Engine
from clustering.embedding import filling
from clustering.embedding.align import normalise
from clustering.engine import spaces as module
from clustering.engine.runs import run_lock, space_lock
from clustering.errors import ModelError, NotFoundError, RunLocked, SpaceError
from clustering.store.database import drop_database, make_database


@pytest.fixture(scope="session")
def old_model(tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("old"), seed=0)


@pytest.fixture(scope="session")
def new_model(tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("new"), seed=1)


@pytest.fixture(scope="session")
def thresholds(tmp_path_factory):
    return write_calibration(tmp_path_factory.mktemp("thresholds") / "strict.toml")


@pytest.fixture(scope="session")
def filled_database(server, template_database, old_model, thresholds, tmp_path_factory):
    """A database with 300 articles of the old model, in stories; made once and copied."""
    name = "template_small"
    copy_database(server, template_database, name)
    home = tmp_path_factory.mktemp("home")
    dsn = server.dsn(name)
    with Engine.open(dsn, home=home, model=old_model, calibration=thresholds) as engine:
        engine.ingest(stream(300), first_seen=seen)
        engine.cluster()
    return name


@pytest.fixture
def dsn(server, filled_database, database_numbers):
    name = f"small_{next(database_numbers)}"
    copy_database(server, filled_database, name)
    yield server.dsn(name)
    drop_database(server.dsn("postgres"), name)


@pytest.fixture
def reopen(dsn, tmp_path, thresholds):
    """Open the database anew; without a model named, as a cron job that never changes does."""

    def opened(model=None, **values):
        return Engine.open(dsn, home=tmp_path, model=model, calibration=thresholds, **values)

    return opened


@pytest.fixture
def small(reopen, old_model):
    """An engine whose database has 300 articles of the old model, which it names, in stories."""
    with reopen(old_model) as engine:
        yield engine


def names(engine):
    return [state.name for state in engine.spaces()]


def state(engine, name):
    (found,) = [state for state in engine.spaces() if state.name == name]
    return found


def test_a_database_begins_with_one_space_that_is_full(small, old_model):
    (only,) = small.spaces()
    assert only.active
    assert (only.model, only.dimension, only.alignment, only.fit) == (old_model, 32, "none", "")
    assert (only.articles, only.live_missing) == (300, 0)
    assert only.live_wanted > 250
    assert only.size_bytes > 300 * 32 * 2 * 2
    assert only.background is None


def test_a_new_model_is_filled_beside_the_old_one(small, new_model, old_model):
    before = small._database.session.connection.execute("SELECT max(id) FROM run").fetchone()
    filled = small.backfill_space(new_model)
    assert (filled.model, filled.active, filled.articles) == (new_model, False, 300)
    assert filled.live_missing == 0
    assert [state.active for state in small.spaces()] == [True, False]
    raw = vectors(small, filled.name, "raw")
    assert raw.keys() == vectors(small, names(small)[0], "raw").keys()
    after = small._database.session.connection.execute("SELECT max(id) FROM run").fetchone()
    assert after == before, "filling is no run"


def test_filled_vectors_are_those_of_the_new_model(small, new_model, reopen):
    filled = small.backfill_space(new_model)
    raw = vectors(small, filled.name, "raw")
    rows = small._database.session.connection.execute("SELECT id, title FROM article").fetchall()
    with reopen(new_model) as other:
        fresh = other.model.encode([title for _, title in rows], [""] * len(rows))
    for (article, _), vector in zip(rows, fresh, strict=True):
        assert raw[article] == pytest.approx(vector, abs=2e-3)


def test_filling_twice_encodes_nothing(small, new_model, monkeypatch):
    first = small.backfill_space(new_model)
    monkeypatch.setattr(module.Model, "encode", refuse)
    again = small.backfill_space(first.name)
    assert again.articles == first.articles


def refuse(*_):
    raise AssertionError("nothing is to be encoded")


def test_a_space_that_is_not_full_does_not_serve(small, new_model):
    half = small.backfill_space(new_model, since=START + timedelta(hours=4))
    assert 0 < half.live_missing < half.live_wanted
    wanted = (
        rf"lacks {half.live_missing} of the {half.live_wanted} articles .* backfill {half.name}"
    )
    with pytest.raises(SpaceError, match=wanted):
        small.activate_space(half.name)
    assert [state.active for state in small.spaces()] == [True, False]
    assert small.cluster().run_id is None, "the old space serves on"
    small.backfill_space(half.name)
    small.activate_space(half.name)
    assert [state.active for state in small.spaces()] == [False, True]


def test_stories_keep_their_ids_and_get_centroids_of_the_new_space(small, new_model, reopen):
    before = story_ids(small)
    filled = small.backfill_space(new_model)
    report = small.activate_space(filled.name)
    assert report.run_id is not None
    with reopen() as engine:
        assert story_ids(engine) == before
        aligned = vectors(engine, filled.name)
        for story in engine.stories():
            own = np.stack([aligned[article.id] for article in story.articles][-10:])
            expected = normalise(own.mean(axis=0, keepdims=True))[0]
            assert story.centroid == pytest.approx(expected, abs=3e-3)
        assert len(list(engine.stories())) > 30


def test_the_hourly_job_goes_on_with_the_new_space_and_grows_old_stories(small, new_model, reopen):
    filled = small.backfill_space(new_model)
    small.activate_space(filled.name)
    before = story_ids(small)
    copies = [copy_of(article) for article in stream(300)[-60:] if before[article.id]]
    assert len(copies) > 20
    with reopen() as engine:
        assert engine.model.name == new_model
        engine.ingest(copies, first_seen=seen)
        assert engine.cluster().counts["encoded"] == len(copies)
        after = story_ids(engine)
        assert {guid: after[guid] for guid in before if before[guid]} == {
            guid: story for guid, story in before.items() if story
        }
        same = [after[copy.id] == before[copy.id.removeprefix("copy of ")] for copy in copies]
        assert sum(same) > 0.9 * len(copies)
        assert state(engine, filled.name).articles == 300 + len(copies)
        assert engine.spaces()[0].articles == 300


def copy_of(article):
    """The same words an hour after the end of the stream, from another source."""
    return replace(
        article,
        id=f"copy of {article.id}",
        source=f"copies {article.source}",
        published_at=START + timedelta(hours=8, minutes=30),
    )


def test_the_engine_that_swapped_goes_on_itself(small, new_model, reopen):
    with reopen() as engine:
        filled = engine.backfill_space(new_model)
        engine.activate_space(filled.name)
        engine.ingest(stream(320)[300:], first_seen=seen)
        assert engine.cluster().counts["encoded"] == 20
        assert state(engine, filled.name).articles == 320


def test_an_engine_that_names_the_old_model_is_refused_after_the_swap(small, new_model, old_model):
    small.activate_space(small.backfill_space(new_model).name)
    with pytest.raises(ModelError, match="stories space backfill"):
        small.cluster()


def test_the_old_space_can_serve_again(small, new_model, reopen):
    old = names(small)[0]
    before = vectors(small, old, "raw")
    small.activate_space(small.backfill_space(new_model).name)
    with reopen() as engine:
        engine.ingest(stream(330)[300:], first_seen=seen)
        engine.cluster()
        with pytest.raises(SpaceError, match="lacks 30 of"):
            engine.activate_space(old)
        engine.backfill_space(old)
        engine.activate_space(old)
        after = vectors(engine, old, "raw")
        assert len(after) == 330
        for article, vector in before.items():
            np.testing.assert_array_equal(after[article], vector)


def test_a_space_that_serves_cannot_be_activated_or_dropped(small):
    (only,) = names(small)
    with pytest.raises(SpaceError, match="active space already"):
        small.activate_space(only)
    with pytest.raises(SpaceError, match="activate another one"):
        small.drop_space(only)
    assert names(small) == [only]
    assert vectors(small, only)


def test_a_dropped_space_leaves_nothing(small, new_model):
    old = names(small)[0]
    filled = small.backfill_space(new_model)
    small.activate_space(filled.name)
    small.drop_space(old)
    assert names(small) == [filled.name]
    session = small._database.session
    left = session.connection.execute(
        "SELECT count(*) FROM pg_class WHERE relname LIKE %s", (f"%{old}%",)
    )
    assert left.fetchone()[0] == 0
    assert session.connection.execute("SELECT count(*) FROM domain_mean").fetchone()[0] == 2
    assert len(list(small.stories())) > 30


@pytest.mark.parametrize("call", ["activate_space", "drop_space", "fit_space"])
def test_an_unknown_space_is_named_with_those_there_are(small, call):
    (only,) = names(small)
    with pytest.raises(NotFoundError, match=f"no space nonsense; spaces of this database: {only}"):
        getattr(small, call)("nonsense")


def test_an_unknown_model_cannot_be_filled(small):
    with pytest.raises(ModelError, match="no model is called nonsense"):
        small.backfill_space("nonsense")


def test_a_fresh_database_has_nothing_to_fill(server, reopen, new_model, tmp_path):
    make_database(server.dsn("postgres"), "nothing_yet")
    with Engine.open(server.dsn("nothing_yet"), home=tmp_path) as engine:
        assert engine.spaces() == []
        for call in (lambda: engine.backfill_space(new_model), engine.fit_space):
            with pytest.raises(SpaceError, match="nothing is encoded yet"):
                call()


def test_a_failed_activation_leaves_the_old_space_at_work(small, new_model, monkeypatch):
    filled = small.backfill_space(new_model)
    old = names(small)[0]
    before = vectors(small, filled.name), told(small)
    monkeypatch.setattr(module, "refresh", refuse)
    with pytest.raises(AssertionError):
        small.activate_space(filled.name)
    monkeypatch.undo()
    assert small._database.session.part("space") == old
    assert told(small) == before[1]
    after = vectors(small, filled.name)
    assert all((after[article] == vector).all() for article, vector in before[0].items())
    assert small.activate_space(filled.name).run_id is not None


def test_activation_waits_for_no_run_and_fills_go_one_at_a_time(small, new_model, dsn):
    filled = small.backfill_space(new_model)
    with run_lock(dsn):
        with pytest.raises(RunLocked, match="another run"):
            small.activate_space(filled.name)
        small.backfill_space(filled.name)
    with space_lock(dsn, filled.name):
        with pytest.raises(RunLocked, match=f"fills the space {filled.name}"):
            small.backfill_space(filled.name)
        with pytest.raises(RunLocked, match="fills the space"):
            small.drop_space(filled.name)


def told(engine):
    """What there is to say of spaces but for dead rows on the disk."""
    return [replace(state, size_bytes=0) for state in engine.spaces()]


class DuringBackfill:
    """Progress that does something after each chunk of a backfill."""

    def __init__(self, work):
        self.work = work
        self.chunks = 0

    @contextmanager
    def stage(self, name, total):
        def advance(count):
            if name == "backfill":
                self.chunks += 1
                self.work(self.chunks)

        yield advance


def test_hourly_runs_go_on_with_the_old_space_while_another_is_filled(
    small, new_model, reopen, monkeypatch
):
    monkeypatch.setattr(filling, "CHUNK_ARTICLES", 100)
    late = stream(340)[300:]

    def hour(chunk):
        if chunk <= 2:
            with reopen() as hourly:
                hourly.ingest(late[20 * chunk - 20 : 20 * chunk], first_seen=seen)
                counts.append(hourly.cluster().counts["encoded"])

    counts = []
    with reopen(progress=DuringBackfill(hour)) as engine:
        filled = engine.backfill_space(new_model)
        assert counts == [20, 20]
        assert (filled.articles, filled.live_missing) == (340, 0)
        assert [state.articles for state in engine.spaces()] == [340, 340]
        engine.activate_space(filled.name)


KILLED = """
import sys, time
from contextlib import contextmanager
from pathlib import Path
from clustering import Engine
from clustering.embedding import filling

class Telling:
    @contextmanager
    def stage(self, name, total):
        def advance(count):
            print(name, count, flush=True)
            time.sleep(0.5)
        yield advance

filling.CHUNK_ARTICLES = 40
dsn, home, model = sys.argv[1:]
with Engine.open(dsn, home=Path(home), progress=Telling()) as engine:
    engine.backfill_space(model)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_backfill_killed_in_the_middle_goes_on_to_the_same_result(
    small, new_model, dsn, tmp_path, monkeypatch
):
    program = [sys.executable, "-c", KILLED, dsn, str(tmp_path), new_model]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(3):
            assert child.stdout.readline() == "backfill 40\n"
        child.send_signal(signal.SIGKILL)
    name = names(small)[1]
    half = state(small, name)
    assert 120 <= half.articles < 300
    assert half.live_missing == half.live_wanted - min(half.articles, half.live_wanted)
    with pytest.raises(SpaceError, match=f"lacks {half.live_missing} of"):
        small.activate_space(name)
    encoded = []
    real = module.Model.encode
    monkeypatch.setattr(
        module.Model,
        "encode",
        lambda self, titles, ledes: encoded.append(len(titles)) or real(self, titles, ledes),
    )
    small.backfill_space(name)
    assert sum(encoded) == 300 - half.articles, "what was written is not encoded again"
    small.activate_space(name)
    resumed = vectors(small, name), story_ids(small)
    old = names(small)[0]
    small.activate_space(old)
    small.drop_space(name)
    assert small.backfill_space(new_model).name == name
    small.activate_space(name)
    whole = vectors(small, name)
    assert whole.keys() == resumed[0].keys()
    for article, vector in whole.items():
        assert resumed[0][article] == pytest.approx(vector, abs=2e-3)
    assert story_ids(small) == resumed[1]


def test_an_edited_article_is_filled_in_its_new_words(small, new_model, reopen):
    filled = small.backfill_space(new_model)
    first = stream(1)[0]
    edited = replace(first, title="zzzz")
    small.ingest([edited], first_seen=seen)
    assert state(small, filled.name).live_missing == 0, "what waits for a run is missing nowhere"
    small.cluster()
    before = vectors(small, filled.name, "raw")
    again = small.backfill_space(filled.name)
    after = vectors(small, filled.name, "raw")
    assert again.articles == 300
    changed = [article for article in before if (before[article] != after[article]).any()]
    assert len(changed) == 1


@pytest.fixture
def stories(small, dsn, tmp_path):
    return CommandLine(dsn, tmp_path)


def test_a_space_from_model_to_service_on_the_command_line(
    stories, small, new_model, old_model, thresholds
):
    (old,) = names(small)
    before = story_ids(small)
    (listed,) = stories("space", "list", "--json").document
    assert (listed["name"], listed["active"], listed["live_missing"]) == (old, True, 0)
    filled = stories("space", "backfill", new_model)
    assert filled.status == 0, filled.err
    (new,) = [name for name in names(small) if name != old]
    assert f"{new} is full; let it serve with `stories space activate {new}`" in filled.out
    done = stories("space", "activate", new, "--calibration", thresholds)
    assert done.status == 0, done.err
    rows = stories("space", "list").out.splitlines()
    assert [row.split()[:2] for row in rows[1:]] == [[old, old_model], ["*", new]]
    assert story_ids(small) == before
    assert stories("space", "drop", old, "--json").document == {"dropped": old}
    assert names(small) == [new]


def test_what_a_command_cannot_do_is_one_line(stories, small):
    (old,) = names(small)
    for arguments, reason in (
        (("activate", old), f"{old} is the active space already"),
        (("drop", old), old),
        (("fit",), "has 300 articles; a mean that holds for a corpus takes 2000"),
        (("backfill", "no such model"), "no model is called no such model"),
    ):
        ran = stories("space", *arguments)
        assert (ran.status, ran.out, len(ran.err.splitlines())) == (1, "", 1)
        assert reason in ran.err


def test_a_fresh_database_has_no_space(server, database_numbers, tmp_path):
    name = f"fresh_{next(database_numbers)}"
    make_database(server.dsn("postgres"), name)
    ran = CommandLine(server.dsn(name), tmp_path)("space", "list")
    assert (ran.status, ran.out) == (0, "")
    assert "no space yet; the first run makes one" in ran.err
    drop_database(server.dsn("postgres"), name)
