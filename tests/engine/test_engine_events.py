"""Events through the engine and the command line, on the sample days with the real model."""

from __future__ import annotations

import json

import pytest
from command_line import CommandLine
from psycopg import sql

from clustering.engine import Engine
from clustering.errors import NotFoundError
from clustering.store.session import Session


@pytest.fixture(scope="module")
def played(server, template_database, database_numbers, model_home, sample_articles):
    """An engine that has played the sample day with events that come easily; nobody writes."""
    name = f"events_{next(database_numbers)}"
    session = Session(server.dsn("postgres"))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    session.connection.execute(copy.format(sql.Identifier(name), sql.Identifier(template_database)))
    session.close()
    with Engine.open(server.dsn(name), home=model_home) as engine:
        engine.play(sample_articles)
        yield engine


def test_look_alike_events_of_one_day_stay_apart(played, sample_lines):
    """Two earthquakes, two cup matches, two central banks: each has labels of its own."""
    labels = {json.loads(line)["id"]: json.loads(line)["story"] for line in sample_lines}
    events = {}
    for (_, guid), place in played.assignments().items():
        if place.event_id is not None and labels.get(guid):
            events.setdefault(place.event_id, set()).add(labels[guid])
    for told in events.values():
        assert len(told & {"karsova-earthquake", "almyra-earthquake"}) < 2
        assert len(told) < 3


def test_every_event_is_told_by_the_stories_that_it_names(played):
    known = {story.id: story for story in played.summaries(min_size=1)}
    for event in played.events(min_stories=1):
        assert event.stories == len(event.timeline) > 1
        assert event.articles == sum(known[story.id].size for story in event.timeline)
        assert event.first_time == min(known[story.id].first_time for story in event.timeline)
        assert played.event(event.id) == event
        for story in event.timeline:
            assert story.score >= story.threshold - 1e-6


def test_a_second_run_changes_nothing(played, sample_articles):
    before = played.events()
    report = played.play(sample_articles)
    assert not {"events", "linked", "event_merges"} & {k for k, v in report.counts.items() if v}
    assert played.events() == before


def test_an_unknown_event_is_named(played):
    with pytest.raises(NotFoundError, match="there is no event 12345"):
        played.event(12345)


def test_the_command_lists_and_shows(played):
    stories = CommandLine(played.dsn, played.settings.home)
    document = stories("events", "--json").document
    assert [event["id"] for event in document] == [event.id for event in played.events()]
    missing = stories("events", "12345")
    assert (missing.status, len(missing.err.splitlines())) == (1, 1)
    listed = stories("events")
    assert listed.status == 0
    if document:
        shown = stories("events", document[0]["id"])
        assert f"#{document[0]['id']}" in shown.out
        assert "nearest" in shown.out
    else:
        assert "no events yet" in listed.err
