"""Events of other thresholds beside those of a database."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_events_linker import DAY, RULES, events, link, members, story

from clustering.events.linker import Linker
from clustering.events.reading import EventFilter, list_events
from clustering.events.trials import Trial


@pytest.fixture
def told(world):
    """Three stories, 20 and 50 degrees apart, told and linked day by day beside two trials."""
    trials = [Trial(world.session, 0.6), Trial(world.session, 0.9)]
    for trial in trials:
        trial.make()
    ids = []
    for day, degrees in enumerate((0, 20, 50)):
        ids.append(story(world, degrees, day * DAY))
        link(world)
        for trial in trials:
            trial.run(replace(RULES, link=trial.link), 1)
    return world, ids, trials


def test_a_trial_of_the_same_threshold_finds_the_same_events(told):
    world, ids, (same, _) = told
    assert members(world) == [ids]
    assert sorted(same.events()) == ids
    assert len(set(same.events().values())) == 1


def test_each_trial_has_the_events_of_its_own_threshold(told):
    _, ids, (_, strict) = told
    assert sorted(strict.events()) == ids[:2]


def test_a_trial_leaves_the_events_of_the_database_alone(told):
    world, _, (_, strict) = told
    before = world.snapshot()
    world.add(world.sql("SELECT aligned FROM article_vector_tiny LIMIT 1")[0][0].to_numpy(), DAY)
    world.cluster()
    changed = world.snapshot()
    strict.run(replace(RULES, link=strict.link), 1)
    assert world.snapshot() == changed
    for table in ("event", "event_story", "event_merge", "event_progress"):
        assert changed[table] == before[table]


def test_the_threshold_of_a_trial_is_recorded_with_its_decisions(told):
    world, ids, (_, strict) = told
    scores = world.sql('SELECT story_id, score, threshold FROM "events_at_0.9".event_story')
    assert {row.story_id for row in scores} == set(ids[:2])
    assert all(row.score >= row.threshold for row in scores)
    assert scores[0].threshold == pytest.approx(strict.link)


def test_without_changes_a_trial_writes_nothing(told):
    world, _, (_, strict) = told
    text = 'SELECT xmin::text || ctid::text FROM "events_at_0.9".event_progress'
    before = world.one(text)
    strict.run(replace(RULES, link=strict.link), 1)
    assert world.one(text) == before


def test_reading_events_never_meets_a_trial(told):
    world, _, _ = told
    Linker(world.session, RULES, 1).run()
    assert [event.stories for event in events(world)] == [3]
    assert list_events(world.session, EventFilter(min_stories=4), RULES.gap) == []
