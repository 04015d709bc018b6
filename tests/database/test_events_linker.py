"""Stories become events: what is linked, recorded, redirected, and what stays as it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from worlds import at, turned

from clustering.errors import NotFoundError
from clustering.events import linker as module
from clustering.events.linker import EventRules, Linker
from clustering.events.reading import EventFilter, find_event, list_events

GAP = timedelta(days=7)
RULES = EventRules(link=0.6, gap=GAP, time_penalty=0, neighbours=10)
DAY = 24.0


def story(world, degrees, hours, plane=0, size=2):
    """A story of some articles in one hour; returns its id."""
    articles = [world.add(turned(degrees, plane), hours) for _ in range(size)]
    world.cluster(match=1, attach=1, merge=1)  # later stories are stories of their own
    return world.story_of(articles[0])


def link(world, rules=RULES):
    return Linker(world.session, rules, world.run_id()).run()


def events(world, **wanted):
    return list_events(world.session, EventFilter(**wanted), GAP)


def members(world):
    return [[story.id for story in event.timeline] for event in events(world)]


def test_stories_of_days_become_one_event_with_a_reason(world):
    one, other = story(world, 0, 0), story(world, 40, 3 * DAY)
    assert link(world) == {"events": 1, "linked": 2}
    (event,) = events(world)
    assert [entry.id for entry in event.timeline] == [one, other]
    assert (event.stories, event.articles, event.languages) == (2, 4, ["en"])
    assert (event.first_time, event.latest_time) == (at(0), at(3 * DAY))
    for entry, nearest in zip(event.timeline, (other, one), strict=True):
        assert entry.score == pytest.approx(0.766, abs=0.002)
        assert entry.threshold == pytest.approx(0.6)
        assert entry.nearest_id == nearest
        assert entry.run_id == world.one("SELECT max(id) FROM run")


def test_look_alikes_and_what_is_too_far_in_time_stay_apart(world):
    story(world, 0, 0)
    story(world, 60, DAY)  # cosine .5
    story(world, 0, DAY, plane=1)
    story(world, 0, 8 * DAY + 1)
    assert link(world) == {}
    assert events(world) == []


def test_days_count_against_a_pair(world):
    story(world, 0, 0)
    story(world, 45, 6 * DAY)  # cosine .707, less .05 * log(7) = .61
    assert link(world, EventRules(0.62, GAP, 0.05, 10)) == {}
    world.sql("UPDATE event_progress SET change = 0")
    assert link(world, EventRules(0.6, GAP, 0.05, 10)) == {"events": 1, "linked": 2}


def test_an_article_alone_is_no_story_for_an_event(world):
    story(world, 0, 0)
    world.add(turned(0), 2 * DAY)
    world.cluster(match=1, attach=1)
    assert link(world) == {}


def test_a_story_joins_by_its_mean_score_against_the_event(world):
    one, other = story(world, 0, 0), story(world, 30, DAY)
    link(world)
    # To the two: cosines of 60 and 30 degrees, .5 and .866, mean .683.
    third = story(world, 60, 2 * DAY)
    assert link(world) == {"linked": 1}
    (event,) = events(world)
    assert [entry.id for entry in event.timeline] == [one, other, third]
    assert event.timeline[2].score == pytest.approx(0.683, abs=0.003)
    assert event.timeline[2].nearest_id == other
    # To the three: 80, 50 and 20 degrees, .174, .643 and .940, mean .586.
    story(world, 80, 3 * DAY)
    assert link(world) == {}


def test_only_the_last_days_of_a_long_event_are_compared(world):
    turns = []
    for number in range(5):  # the first and the last are at a right angle, and 16 days apart
        turns.append(story(world, 22.5 * number, 4 * DAY * number))
        link(world)
    assert members(world) == [turns]


def test_a_run_without_changes_writes_nothing(world):
    story(world, 0, 0)
    story(world, 20, DAY)
    link(world)
    before = world.snapshot()
    assert Linker(world.session, RULES, 1).run() == {}
    assert world.snapshot() == before


def test_two_events_become_one_and_both_ids_lead_there(world):
    first, second = story(world, 0, 0), story(world, 20, DAY)
    third, fourth = story(world, 80, 2 * DAY), story(world, 100, 3 * DAY)
    link(world)
    older, younger = sorted(events(world), key=lambda event: event.first_time)
    assert older.id < younger.id
    # Between the two: nearer to both than these are to each other.
    between = story(world, 50, 4 * DAY)
    counts = link(world, EventRules(0.3, GAP, 0, 10))
    assert counts["event_merges"] == 1
    (event,) = events(world)
    assert event.id == older.id
    assert {entry.id for entry in event.timeline} == {first, second, third, fourth, between}
    assert find_event(world.session, younger.id, GAP) == event
    (absorbed,) = event.absorbed
    assert (absorbed.event_id, absorbed.threshold) == (younger.id, pytest.approx(0.3))
    redirected = "SELECT count(*) FROM event a JOIN event b ON b.id = a.merged_into WHERE b.merged_into IS NOT NULL"
    assert world.one(redirected) == 0


def test_an_event_follows_the_story_that_absorbed_its_own(world):
    one, other = story(world, 0, 0), story(world, 40, DAY)
    link(world)
    twin = story(world, 44, DAY + 1, size=3)
    world.absorb(other, twin)
    link(world)
    (event,) = events(world)
    assert [entry.id for entry in event.timeline] == [one, twin]


def test_what_grows_moves_the_end_of_its_event(world):
    story(world, 0, 0)
    grown = story(world, 20, DAY)
    link(world)
    world.add(turned(20), DAY + 10)
    world.cluster()
    assert world.one("SELECT size FROM story WHERE id = %s", grown) == 3
    link(world)
    (event,) = events(world)
    assert event.latest_time == at(DAY + 10)
    assert event.articles == 5


def test_events_are_open_until_no_story_can_join(world):
    story(world, 0, 0)
    story(world, 20, DAY)
    link(world)
    assert [event.open for event in events(world)] == [True]
    story(world, 0, 9 * DAY, plane=2)
    link(world)
    assert [event.open for event in events(world)] == [False]
    assert events(world, only_open=True) == []


def test_events_are_found_by_time_and_number_of_stories(world):
    story(world, 0, 0)
    story(world, 20, DAY)
    link(world)
    assert len(events(world, since=at(DAY), until=at(0))) == 1
    assert events(world, since=at(DAY + 1)) == []
    assert events(world, until=at(-1)) == []
    assert events(world, min_stories=3) == []
    with pytest.raises(NotFoundError, match="there is no event 77"):
        find_event(world.session, 77, GAP)


def killed(*_):
    raise RuntimeError("killed")


def test_a_process_killed_in_the_middle_leaves_nothing_and_the_next_does_it(world, monkeypatch):
    story(world, 0, 0)
    story(world, 20, DAY)
    before = world.snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(module, "agreements", killed)
        with pytest.raises(RuntimeError, match="killed"):
            Linker(world.session, RULES, 1).run()
    assert world.snapshot() == before
    assert link(world) == {"events": 1, "linked": 2}


def test_batches_and_one_go_give_the_same_events(world, session, monkeypatch):
    for number in range(8):
        story(world, 12 * number, 10 * number, plane=number % 2)
    monkeypatch.setattr(module, "BATCH_STORIES", 500)
    link(world)
    whole = members(world)
    for table in ("event_story", "event_merge"):
        world.sql(f"DELETE FROM {table}")
    world.sql("UPDATE event SET merged_into = NULL")
    world.sql("DELETE FROM event")
    world.sql("UPDATE event_progress SET change = 0")
    link(world)
    assert members(world) == whole
    assert whole


def test_a_story_whose_nearest_was_taken_still_finds_the_next(world):
    """A round joins the two nearest of three; the third then goes to a fourth, not to nobody."""
    fourth = story(world, 0, 0)
    third = story(world, 50, DAY)  # to the fourth: .643
    nearest, taken = story(world, 95, 2 * DAY), story(world, 135, 3 * DAY)
    # third and nearest: 45 degrees, .707; nearest and taken: 40 degrees, .766; third and taken: .087.
    assert link(world) == {"events": 2, "linked": 4}
    assert sorted(members(world)) == [[fourth, third], [nearest, taken]]


def test_an_event_whose_stories_all_went_elsewhere_leads_there(world):
    one, other = story(world, 0, 0), story(world, 20, DAY)
    third, fourth = story(world, 0, 0, plane=1), story(world, 20, DAY, plane=1)
    link(world)
    kept, emptied = sorted(event.id for event in events(world))
    for absorbed, survivor in ((third, one), (fourth, other)):
        world.absorb(absorbed, survivor)
    counts = link(world)
    assert counts["event_merges"] == 1
    event = find_event(world.session, emptied, GAP)
    assert event.id == kept
    assert [entry.id for entry in event.timeline] == [one, other]
    (absorbed,) = event.absorbed
    assert (absorbed.event_id, absorbed.score, absorbed.threshold) == (emptied, 1.0, 0.5)
