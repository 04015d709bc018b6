"""Undo, move, split and merge through the engine and the command line, on the sample day with the real model."""

from __future__ import annotations

from datetime import timedelta

import pytest
from command_line import CommandLine
from psycopg import sql

from clustering import Article, Engine
from clustering.engine.runs import run_lock
from clustering.errors import BuiltUpon, InvalidInput, NotFoundError, RunLocked
from clustering.store.session import Session


def copied(server, source, name):
    session = Session(server.dsn("postgres"))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    session.connection.execute(copy.format(sql.Identifier(name), sql.Identifier(source)))
    session.close()


@pytest.fixture(scope="module")
def two_runs(server, template_database, database_numbers, model_home, sample_articles):
    """Name of a database in which the sample day came in two halves, each with a run."""
    name = f"halves_{next(database_numbers)}"
    copied(server, template_database, name)
    middle = len(sample_articles) // 2
    ordered = sorted(sample_articles, key=lambda article: article.published_at)
    with Engine.open(server.dsn(name), home=model_home) as engine:
        for half in (ordered[:middle], ordered[middle:]):
            engine.ingest(half, first_seen=lambda article: article.published_at)
            engine.run()
    return name


@pytest.fixture
def day(server, two_runs, database_numbers, model_home):
    name = f"day_{next(database_numbers)}"
    copied(server, two_runs, name)
    with Engine.open(server.dsn(name), home=model_home) as engine:
        yield engine


def partition(engine):
    """Stories as sets of the feeds' own ids, duplicates among them."""
    found = {}
    for key, place in engine.assignments().items():
        if place.story_id is not None:
            found.setdefault(place.story_id, set()).add(key)
    return found


def runs(engine, command):
    return [run["id"] for run in reversed(engine.stats()["runs"]) if run["command"] == command]


def two_stories(engine):
    found = sorted(engine.stories(min_size=3), key=lambda story: (-story.size, story.id))
    return found[0], found[1]


def test_the_last_run_is_undone_and_the_next_does_it_again(day):
    before, (first, second) = partition(day), runs(day, "run")
    undone = day.undo(second, by="ann")
    assert (undone.undone, undone.cascaded) == (second, ())
    assert undone.counts["placements"] > 0
    half = partition(day)
    assert half
    assert half.keys() < before.keys() | half.keys()
    assert all(story in before for story in half), "ids that were there before stay"
    report = day.run()
    assert report.counts["matched"] + report.counts["discovered"] > 0
    assert set(map(frozenset, partition(day).values())) == set(map(frozenset, before.values()))
    assert not set(partition(day)) - set(half) & set(before), "no id comes again"
    assert first in runs(day, "run")


def test_a_run_that_others_built_on_is_refused_and_they_are_named(day):
    before, (first, second) = partition(day), runs(day, "run")
    with pytest.raises(BuiltUpon, match=rf"run {second} \(\d+ decisions\); --cascade"):
        day.undo(first, by="ann")
    assert partition(day) == before
    assert runs(day, "undo") == []
    undone = day.undo(first, by="ann", cascade=True)
    assert undone.cascaded == (second,)
    kept = {frozenset(guids) for guids in partition(day).values()}
    assert kept < {frozenset(guids) for guids in before.values()}
    day.run()
    assert len(partition(day)) == pytest.approx(len(before), abs=len(before) // 10)


def test_links_of_an_ingest_are_undone_and_the_copies_are_placed(day):
    link = day.duplicates()[0]
    folded = sum(found.run_id == link.run_id for found in day.duplicates())
    undone = day.undo(link.run_id, by="ann", cascade=True)
    assert undone.counts["links"] == folded
    assert link.article_id not in {found.article_id for found in day.duplicates()}
    day.run()
    placed = {a.id for story in day.stories(min_size=1) for a in story.articles}
    assert link.article_id in placed


def test_a_run_is_undone_once_and_only_one_that_there_is(day):
    (_, second) = runs(day, "run")
    undone = day.undo(second, by="ann")
    with pytest.raises(InvalidInput, match=f"was undone by run {undone.run_id}"):
        day.undo(second, by="ann")
    with pytest.raises(InvalidInput, match="cannot be undone: `stories cluster`"):
        day.undo(undone.run_id, by="ann")
    with pytest.raises(NotFoundError, match="there is no run 9876"):
        day.undo(9876, by="ann")
    (run,) = [run for run in day.stats()["runs"] if run["id"] == second]
    assert run["undone_by"] == undone.run_id


def test_what_has_its_own_way_back_is_refused_with_it(day):
    link = day.duplicates()[0]
    undone = day.undo_pair(link.article_id, link.canonical_id)
    with pytest.raises(InvalidInput, match="no stage folds them again"):
        day.undo(undone.run_id, by="ann")


def test_an_edit_names_who_and_when_and_can_be_undone(day):
    one, other = two_stories(day)
    before = partition(day)
    article = one.articles[0]
    edit = day.move(article.id, other.id, by="ann")
    assert (edit.story_id, edit.by) == (other.id, "ann")
    (moved,) = [a for a in day.story(other.id).articles if a.id == article.id]
    assert (moved.pass_name, moved.editor, moved.run_id) == ("editor", "ann", edit.run_id)
    assert (moved.score, moved.threshold) == (None, None)
    assert moved.placed_at >= moved.event_time
    assert day.story(one.id).size == one.size - 1
    assert day.undo(edit.run_id, by="bob").counts["judgements"] >= 1
    assert partition(day) == before
    (again,) = [a for a in day.story(one.id).articles if a.id == article.id]
    assert again == article


def test_later_runs_respect_edits(day):
    one, other = two_stories(day)
    article = one.articles[0]
    day.move(article.id, other.id, by="ann")
    split = day.split(one.id, [a.id for a in one.articles[1:2]], by="ann")
    late = max(one.latest_time, other.latest_time) + timedelta(hours=1)
    day.ingest(
        [
            Article(f"{a.title}, update", id=f"late-{a.id}", published_at=late, source="late wire")
            for a in (*one.articles, *other.articles)
        ],
        first_seen=lambda article: article.published_at,
    )
    day.run()
    places = {place.id: story.id for story in day.stories(min_size=1) for place in story.articles}
    assert places[article.id] == day.story(other.id).id
    assert places[one.articles[1].id] == day.story(split.story_id).id
    stories = {day.story(story).id for story in (one.id, other.id, split.story_id)}
    assert len(stories) == 3, "what an editor parted was merged"


def test_a_merge_is_shown_with_who_merged(day):
    one, other = two_stories(day)
    edit = day.merge(one.id, other.id, by="ann")
    whole = day.story(other.id)
    assert (whole.id, whole.size) == (one.id, one.size + other.size)
    (absorbed,) = [merged for merged in whole.absorbed if merged.story_id == other.id]
    assert (absorbed.score, absorbed.threshold, absorbed.editor) == (None, None, "ann")
    day.undo(edit.run_id, by="ann")
    assert day.story(other.id).size == other.size


def test_what_follows_the_stories_is_told_of_edits_and_of_undoing(day):
    one, other = two_stories(day)
    for story in day.pending("score", min_size=2, since=one.first_time - timedelta(days=9)):
        day.complete("score", story, result={"score": story.size})
    after = max(change.change for change in day.changes())
    edit = day.merge(one.id, other.id, by="ann")
    told = {change.id: change.kind for change in day.changes(after)}
    assert told == {one.id: "changed", other.id: "merged"}
    (again,) = day.pending("score", since=one.first_time - timedelta(days=9))
    assert again.id == one.id
    assert "merged" in again.lease.changes
    day.complete("score", again, result={"score": again.size})
    after = max(change.change for change in day.changes())
    day.undo(edit.run_id, by="ann")
    told = {change.id: change.kind for change in day.changes(after)}
    assert told == {one.id: "changed", other.id: "changed"}
    waiting = {s.id: s for s in day.pending("score", since=one.first_time - timedelta(days=9))}
    assert "parted" in waiting[one.id].lease.changes


def test_a_story_that_is_emptied_is_told_and_listed_no_more(day):
    (_, second) = runs(day, "run")
    before = {story.id for story in day.summaries(min_size=1)}
    after = max(change.change for change in day.changes())
    day.undo(second, by="ann")
    told = {change.id: change.kind for change in day.changes(after)}
    gone = {story for story, kind in told.items() if kind == "emptied"}
    live = {story.id for story in day.summaries(min_size=1)}
    assert before - live
    assert before - live <= gone
    assert not gone & live
    assert all(day.story(story).size == 0 for story in gone)
    assert day.stats()["totals"]["stories"] == len(day.summaries(min_size=1))


def test_why_names_the_editor_and_who_parted(day):
    one, other = two_stories(day)
    article = one.articles[0].id
    edit = day.move(article, other.id, by="ann")
    found = day.why(article, one.id)
    assert found.placement == f"in story {other.id}: put there by ann, run {edit.run_id}"
    reasons = {candidate.story_id: candidate.reason for candidate in found.candidates}
    assert reasons[one.id] == "judged different from an article of it by ann"
    assert reasons[other.id] == "it is in this story"


def test_an_edit_that_is_refused_leaves_nothing(day):
    one, _ = two_stories(day)
    latest = day.stats()["runs"][0]["id"]
    with pytest.raises(InvalidInput, match="needs the name"):
        day.move(one.articles[0].id, one.id, by=" ")
    with pytest.raises(InvalidInput, match="would stay"):
        day.split(one.id, [a.id for a in one.articles], by="ann")
    with pytest.raises(NotFoundError):
        day.merge(one.id, 98765, by="ann")
    assert day.stats()["runs"][0]["id"] == latest
    with run_lock(day.dsn), pytest.raises(RunLocked):
        day.move(one.articles[0].id, one.id, by="ann")


def test_the_commands_do_what_the_engine_does(day):
    stories = CommandLine(day.dsn, day.settings.home)
    one, other = two_stories(day)
    article = one.articles[0].id
    ran = stories("move", article, other.id, "--by", "ann")
    assert ran.status == 0, ran.err
    assert ran.out.endswith(f"[{article}] is in #{other.id}, says ann\n")
    shown = stories("show", other.id).out
    assert "put here by ann, " in shown
    split = stories("split", one.id, one.articles[1].id, "--by", "ann", "--json").document
    assert split.keys() == {"run_id", "story_id", "by"}
    assert stories("show", split["story_id"], "--json").document["size"] == 1
    merged = stories("merge", one.id, split["story_id"])
    assert f"#{split['story_id']} became part of #{one.id}" in merged.out
    assert "merged by " in stories("show", one.id).out
    refused = stories("undo", split["run_id"])
    assert refused.status == 1
    assert "--cascade" in refused.err
    undone = stories("undo", split["run_id"], "--cascade", "--json").document
    assert undone["undone"] == split["run_id"]
    assert undone["counts"]["placements"] == 1
    (moved,) = runs(day, "move")
    ran = stories("undo", moved)
    assert f"run {moved} undone, 1 placement" in ran.out
    assert {a.id for a in day.story(one.id).articles} == {a.id for a in one.articles}
    assert stories("undo", 98765).status == 1
    assert stories("split", one.id).status == 2
