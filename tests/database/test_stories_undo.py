"""Taking runs back: what held before is in force again, to the last column."""

from __future__ import annotations

from datetime import timedelta

import pytest
from worlds import turned

from clustering.events.linker import EventRules, Linker
from clustering.events.reading import EventFilter, list_events
from clustering.events.undo import take_events_back, unravel_events
from clustering.stories.editing import Editor
from clustering.stories.reading import find_story, whole_stories
from clustering.stories.undo import take_back, take_judgements_back, unravel

GAP = timedelta(days=7)
RULES = EventRules(0.6, GAP, 0, 10)
# What decisions left; numbers of changes go on, whatever is taken back.
DECISIONS = {
    "story_article": "t.*",
    "past_placement": "t.*",
    "story_merge": "t.*",
    "event_story": "story_id, event_id, placed_in, score, nearest_id, run_id",
    "event_merge": "t.*",
    "judgement": "a_id, b_id, verdict, judged_by",
    "past_judgement": "t.*",
}


def state(world):
    """What is decided, and what readers see of stories that have articles."""
    found = {
        table: world.sql(f"SELECT row({columns})::text FROM {table} t ORDER BY 1")
        for table, columns in DECISIONS.items()
    }
    found["story"] = world.sql(
        "SELECT id, first_time, latest_time, size, languages, sources, headline_id, merged_into "
        "FROM story WHERE merged_into IS NULL AND size > 0 ORDER BY id"
    )
    found["centroid"] = world.sql(
        "SELECT story_id, centroid::text FROM story_vector_tiny ORDER BY 1"
    )
    found["event"] = world.sql(
        "SELECT id, first_time, latest_time, merged_into FROM event e "
        "WHERE EXISTS (SELECT FROM event_story s WHERE s.event_id = e.id) ORDER BY 1"
    )
    return found


def last_run(world):
    return world.one("SELECT max(id) FROM run")


def link(world):
    Linker(world.session, RULES, world.run_id()).run()


def undo(world, run_id):
    """Take a run back with what was built on it; returns the later runs."""
    own = world.run_id()
    with world.session.transaction():
        gone = unravel(world.session, run_id)
        events = unravel_events(world.session, run_id, gone.stories)
        take_events_back(world.session, events, own)
        take_back(world.session, gone, own, world.calibration)
        take_judgements_back(world.session, {d.run_id for d in gone.decisions}, own)
    world.check()
    runs = {d.run_id for d in gone.decisions} | {d.run_id for d in events.decisions}
    return sorted(runs - {run_id})


def edit(world, name, *arguments):
    run_id = world.run_id()
    with world.session.transaction():
        world.session.execute("sign_run", run_id=run_id, editor="ann")
        return getattr(Editor(world.session, world.calibration, run_id, "ann"), name)(*arguments)


def test_a_new_story_is_undone_and_its_id_goes_to_no_other(world):
    one, other = world.add(turned(0)), world.add(turned(5), 0.5)
    before = state(world)
    world.cluster()
    story = world.story_of(one)
    assert undo(world, last_run(world)) == []
    assert state(world) == before
    assert find_story(world.session, story).size == 0
    world.cluster()
    assert world.stories() == [[one, other]]
    assert world.story_of(one) != story


def test_a_match_is_undone_and_the_story_is_what_it_was(world):
    founders = [world.add(turned(angle)) for angle in (0, 10)]
    world.cluster()
    late = world.add(turned(8), 1, language="es", source="other")
    before = state(world)
    world.cluster()
    assert undo(world, last_run(world)) == []
    assert state(world) == before
    assert world.stories() == [founders]
    world.cluster()
    assert world.stories() == [[*founders, late]]


def test_an_earlier_placement_is_in_force_again(world):
    """Unplaced by one run, attached by the next, matched by the third: undone one after the other."""
    founders = [world.add(turned(0)), world.add(turned(10))]
    world.cluster()
    loose = world.add(turned(50), 1)
    states, runs = [state(world)], []
    for call in (
        {"attach": 0.9},
        {"attach": 0.6},
        {"match": 0.6, "attach": 0.6},
    ):
        world.cluster(**call)
        if world.placement(loose).pass_name == "none":
            assert call == {"attach": 0.9}
        runs.append(last_run(world))
        states.append(state(world))
        world.add(turned(90, 2), 2)  # something to run for
        world.add(turned(4), 2)  # changes the story, so that what is loose is looked at again
    assert world.placement(loose).pass_name == "match"
    assert world.story_of(loose) == world.story_of(founders[0])
    passes = []
    for run in reversed(runs):
        undo(world, run)
        passes.append(world.placement(loose).pass_name)
    assert passes == ["attach", "none", "pending"]


def test_a_merge_is_undone_and_each_article_returns(world):
    one = [world.add(turned(0)) for _ in range(2)]
    other = [world.add(turned(30), 1) for _ in range(2)]
    world.cluster()
    first, second = world.story_of(one[0]), world.story_of(other[0])
    assert first != second
    bridge = world.add(turned(15), 2)
    before = state(world)
    world.cluster(merge=0.8)
    assert world.stories() == [sorted([*one, *other, bridge])]
    assert find_story(world.session, second).id == first
    assert undo(world, last_run(world)) == []
    assert state(world) == before
    assert find_story(world.session, second).id == second
    assert world.story_of(other[0]) == second


def test_a_chain_of_merges_is_undone_one_by_one(world):
    groups = [[world.add(turned(0, plane)) for _ in range(2)] for plane in range(3)]
    world.cluster()
    first, second, third = (world.story_of(group[0]) for group in groups)
    states = [state(world)]
    edit(world, "merge", second, third)
    states.append(state(world))
    edit(world, "merge", first, second)
    assert find_story(world.session, third).id == first
    run = last_run(world)
    undo(world, run)
    assert state(world) == states[1]
    assert find_story(world.session, third).id == second
    undo(world, run - 1)
    assert state(world) == states[0]


def test_what_was_built_on_a_run_goes_with_it(world):
    one = [world.add(turned(0)) for _ in range(2)]
    apart = [world.add(turned(0, 2)) for _ in range(2)]
    before = state(world)
    world.cluster()
    run = last_run(world)
    late = world.add(turned(0), 1)
    world.cluster()
    matched = last_run(world)
    assert undo(world, run) == [matched]
    for article in (*one, *apart, late):
        assert world.placement(article).pass_name == "pending"
    assert state(world)["story"] == before["story"] == []


def test_what_was_built_on_something_else_stays(world):
    [world.add(turned(0, 2)) for _ in range(2)]
    world.cluster()
    [world.add(turned(0), 1) for _ in range(2)]
    world.cluster()
    run = last_run(world)
    elsewhere = world.add(turned(0, 2), 2)
    upon = world.add(turned(0), 2)
    world.cluster()
    later = last_run(world)
    assert undo(world, run) == [later]
    assert world.placement(elsewhere).pass_name == "match"
    assert world.placement(upon).pass_name == "pending"
    assert undo(world, later) == []
    assert world.placement(elsewhere).pass_name == "pending"


def test_runs_that_were_undone_are_built_on_by_none(world):
    [world.add(turned(0)) for _ in range(2)]
    world.cluster()
    first = last_run(world)
    world.add(turned(0), 1)
    world.cluster()
    assert undo(world, last_run(world)) == []
    assert undo(world, first) == []
    assert world.stories() == []


@pytest.mark.parametrize("name", ["move", "split", "merge"])
def test_an_edit_is_undone_with_its_judgements(world, name):
    one = [world.add(turned(0)) for _ in range(4)]
    other = [world.add(turned(0, 1)) for _ in range(2)]
    loose = world.add(turned(60), 1)
    world.cluster(attach=0.4)
    assert world.placement(loose).pass_name == "attach"
    stories = world.story_of(one[0]), world.story_of(other[0])
    world.sql(
        "INSERT INTO judgement (a_id, b_id, verdict, judged_by) VALUES (%s, %s, 'same', 'bob')",
        one[0],
        one[3],
    )
    world.sql(
        "INSERT INTO judgement (a_id, b_id, verdict, judged_by) VALUES (%s, %s, 'different', 'bob')",
        one[0],
        other[0],
    )
    before = state(world)
    arguments = {
        "move": (one[0], stories[1]),
        "split": (stories[0], one[:2]),
        "merge": stories,
    }
    edit(world, name, *arguments[name])
    assert state(world)["judgement"] != before["judgement"]
    assert undo(world, last_run(world)) == []
    assert state(world) == before


def test_articles_that_an_edit_let_go_return_too(world):
    one = [world.add(turned(0)) for _ in range(2)]
    other = [world.add(turned(0, 1)) for _ in range(2)]
    loose = world.add(turned(60), 1)
    world.cluster(attach=0.4)
    before = state(world)
    runs = []
    for article in one:
        edit(world, "move", article, world.story_of(other[0]))
        runs.append(last_run(world))
    world.cluster()
    assert world.placement(loose).pass_name == "none"
    later = last_run(world)
    assert undo(world, runs[1]) == [later]
    assert undo(world, runs[0]) == []
    assert state(world) == before


def test_what_is_taken_back_is_written_down(world):
    one = [world.add(turned(0)) for _ in range(2)]
    other = [world.add(turned(0, 1)) for _ in range(2)]
    world.cluster()
    edit(world, "merge", world.story_of(one[0]), world.story_of(other[0]))
    merged = last_run(world)
    clustered = world.one("SELECT min(run_id) FROM story_article")
    undo(world, merged)
    undo(world, clustered)
    rows = world.sql("SELECT run_id, kind, decided FROM undone_decision ORDER BY kind, run_id")
    kinds = [row.kind for row in rows]
    assert kinds == ["judgement", "merge", *["placement"] * 4]
    assert rows[1].run_id == merged
    assert {row.decided["article_id"] for row in rows[2:]} == {*one, *other}


def test_readers_see_the_stories_as_they_were(world):
    one = [world.add(turned(angle)) for angle in (0, 4, 9)]
    world.cluster()
    story = find_story(world.session, world.story_of(one[0]))
    (before,) = whole_stories(world.session, [story])
    world.add(turned(3), 1, language="de")
    world.cluster()
    undo(world, last_run(world))
    after = find_story(world.session, story.id)
    assert after == story
    (whole,) = whole_stories(world.session, [after])
    assert whole.articles == before.articles
    assert whole.centroid == pytest.approx(before.centroid)


def test_events_are_undone_and_found_again(world):
    for hours in (0, 72):
        for _ in range(2):
            world.add(turned(hours / 2), hours)
    world.cluster()
    clustered = last_run(world)
    link(world)
    (event,) = list_events(world.session, EventFilter(), GAP)
    linked = last_run(world)
    before = [entry.id for entry in event.timeline]
    assert undo(world, linked) == []
    assert list_events(world.session, EventFilter(), GAP) == []
    link(world)
    (again,) = list_events(world.session, EventFilter(), GAP)
    assert [entry.id for entry in again.timeline] == before
    assert again.id != event.id
    assert undo(world, clustered) == [last_run(world) - 1]
    assert list_events(world.session, EventFilter(), GAP) == []


def test_merged_events_come_apart(world):
    for degrees, hours in ((0, 0), (20, 24), (80, 48), (100, 72)):
        for _ in range(2):
            world.add(turned(degrees), hours)
    world.cluster(merge_size_penalty=1)
    link(world)
    assert len(list_events(world.session, EventFilter(), GAP)) == 2
    before = state(world)
    for _ in range(2):
        world.add(turned(50), 96)
    world.cluster()
    clustered = last_run(world)
    Linker(world.session, EventRules(0.3, GAP, 0, 10), world.run_id()).run()
    (event,) = list_events(world.session, EventFilter(), GAP)
    assert event.absorbed
    linked = last_run(world)
    assert undo(world, linked) == []
    assert len(list_events(world.session, EventFilter(), GAP)) == 2
    assert undo(world, clustered) == []
    after = state(world)
    assert (after["event"], after["event_story"]) == (before["event"], before["event_story"])


def test_an_event_outlives_a_merge_of_its_stories_that_is_undone(world):
    groups = []
    for degrees, hours in ((0, 0), (40, 10)):
        groups.append([world.add(turned(degrees), hours) for _ in range(2)])
    world.cluster(merge_size_penalty=1)
    link(world)
    before = state(world)
    edit(world, "merge", world.story_of(groups[0][0]), world.story_of(groups[1][0]))
    merged = last_run(world)
    link(world)
    (event,) = list_events(world.session, EventFilter(min_stories=1), GAP)
    assert event.stories == 1
    undo(world, merged)
    link(world)
    assert state(world)["event_story"] == before["event_story"]
    (event,) = list_events(world.session, EventFilter(), GAP)
    assert event.stories == 2


def test_what_was_replaced_before_the_migration_waits_again(world):
    """Nothing is known of what a placement replaced, so that nothing else can be brought back."""
    alone = world.add(turned(0))
    world.cluster()
    assert world.placement(alone).pass_name == "none"
    world.add(turned(0), 1)
    world.cluster()
    assert world.placement(alone).pass_name == "discover"
    world.sql("DELETE FROM past_placement")
    undo(world, last_run(world))
    assert world.placement(alone).pass_name == "pending"
