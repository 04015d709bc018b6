"""Events through the engine and the command line, on the sample days with the real model."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from datetime import timedelta
from importlib.resources import files

import pytest
from command_line import CommandLine
from psycopg import sql

from clustering.embedding.cards import DEFAULT_MODEL
from clustering.engine import Engine
from clustering.errors import NotFoundError
from clustering.settings import Settings
from clustering.store.session import Session
from clustering.stories.calibration import load_calibration

LOOK_ALIKES = (
    {"karsova-earthquake", "almyra-earthquake"},
    {"karvelia-rate-cut", "naharra-rate-hold"},
    {"brisal-montejar-cup", "nordhafen-lesk-quarterfinal"},
)
LOW = 0.4  # joins look-alikes; the sample day has no affair of days for the default to find


@pytest.fixture(scope="module")
def low_calibration(tmp_path_factory):
    """The default calibration with a threshold that makes events come easily."""
    text = (files("clustering.models") / "multilingual-e5-small.calibration.toml").read_text(
        "utf-8"
    )
    path = tmp_path_factory.mktemp("calibration") / "low.toml"
    path.write_text(re.sub(r"(?m)^event_link = .*$", f"event_link = {LOW}", text), "utf-8")
    return path


@pytest.fixture(scope="module")
def played(  # noqa: PLR0917 - fixtures
    server, template_database, database_numbers, model_home, sample_articles, low_calibration
):
    """An engine that has played the sample day with a low threshold, and beside it the default; nobody writes."""
    name = f"events_{next(database_numbers)}"
    session = Session(server.dsn("postgres"))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    session.connection.execute(copy.format(sql.Identifier(name), sql.Identifier(template_database)))
    session.close()
    settings = Settings(server.dsn(name), home=model_home, calibration=low_calibration)
    default = load_calibration(DEFAULT_MODEL).event_link
    with Engine.open(settings=settings) as engine:
        engine.play(sample_articles, event_links=[LOW, default])
        yield engine


@pytest.fixture(scope="module")
def labels_of(played, sample_lines):
    """Tells the labels of the articles of each event at a threshold."""
    labels = {json.loads(line)["id"]: json.loads(line)["story"] for line in sample_lines}

    def told(link):
        at, events = played.events_at(link), {}
        for (_, guid), place in played.assignments().items():
            if place.story_id in at and labels.get(guid):
                events.setdefault(at[place.story_id], set()).add(labels[guid])
        return list(events.values())

    return told


def test_look_alikes_that_a_lower_threshold_joins_stay_apart(labels_of):
    """Two earthquakes, two central banks, two cup matches: other places and people, the same day."""
    low, default = labels_of(LOW), labels_of(load_calibration(DEFAULT_MODEL).event_link)
    for pair in LOOK_ALIKES:
        assert any(pair <= told for told in low), "else the test would say nothing"
        assert not any(pair <= told for told in default)
    assert all(len(told) == 1 for told in default)


def test_events_beside_are_those_of_a_database_with_that_threshold(played):
    beside = defaultdict(set)
    for story, event in played.events_at(LOW).items():
        beside[event].add(story)
    own = [{story.id for story in event.timeline} for event in played.events(min_stories=1)]
    assert own
    assert sorted(map(sorted, beside.values())) == sorted(map(sorted, own))


def test_every_event_is_told_by_the_stories_that_it_names(played):
    known = {story.id: story for story in played.summaries(min_size=1)}
    assert played.events()
    for event in played.events(min_stories=1):
        assert event.stories == len(event.timeline) > 1
        assert event.articles == sum(known[story.id].size for story in event.timeline)
        assert event.first_time == min(known[story.id].first_time for story in event.timeline)
        assert event.latest_time == max(known[story.id].latest_time for story in event.timeline)
        assert played.event(event.id) == event
        for story in event.timeline:
            assert story.score >= story.threshold - 1e-6
            assert story.threshold == pytest.approx(LOW)


def test_a_story_names_its_event_wherever_it_is_read(played):
    events = {
        story.id: event.id for event in played.events(min_stories=1) for story in event.timeline
    }
    summaries = played.summaries(min_size=1)
    assert {story.id: story.event_id for story in summaries if story.event_id} == events
    assert any(story.event_id is None for story in summaries)
    for story in played.stories(min_size=1):
        assert story.event_id == events.get(story.id) == played.story(story.id).event_id
    for place in played.assignments().values():
        assert place.event_id == events.get(place.story_id)


def test_exports_name_the_event(played, tmp_path):
    events = {story.id: story.event_id for story in played.summaries(min_size=2)}
    played.export(tmp_path / "stories.jsonl")
    rows = map(json.loads, (tmp_path / "stories.jsonl").read_text("utf-8").splitlines())
    assert {row["id"]: row["event_id"] for row in rows} == events


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
    listed, shown = stories("events"), stories("events", document[0]["id"])
    assert listed.status == shown.status == 0
    assert f"#{document[0]['id']}" in listed.out
    timeline = document[0]["timeline"]
    assert [story["first_time"] for story in timeline] == sorted(
        story["first_time"] for story in timeline
    )
    assert all(f"#{story['id']}" in shown.out for story in timeline)
    assert f"part of event #{document[0]['id']}" in stories("show", timeline[0]["id"]).out


def test_the_command_leaves_out_what_is_not_asked_for(played):
    stories = CommandLine(played.dsn, played.settings.home)
    known = {event.id: event for event in played.events()}
    most = max(event.stories for event in known.values())
    found = stories("events", "--min-stories", str(most + 1), "--json").document
    assert found == []
    found = stories("events", "--open", "--json").document
    assert {event["id"] for event in found} == {e.id for e in known.values() if e.open}
    latest = max(event.latest_time for event in known.values())
    after = (latest + timedelta(seconds=1)).isoformat()
    assert stories("events", "--since", after, "--json").document == []


def test_a_replay_tries_thresholds_and_evaluate_draws_the_curve(stories, write, tmp_path):
    text = (files("clustering.sample") / "sample_day.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    dated = [json.dumps(row) for row in rows if row.get("published_at")][:40]
    corpus, out = write("corpus.jsonl", *dated), tmp_path / "out.jsonl"
    links = ["--event-link", "0.2", "--event-link", "0.9"]
    assert stories("replay", corpus, *links, "--assignments", out).status == 0
    assigned = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(row["event_ids"].keys() == {"0.2", "0.9"} for row in assigned)
    assert any(row["event_ids"]["0.2"] for row in assigned)
    assert not any(row["event_ids"]["0.9"] for row in assigned)
    curve = stories("evaluate", corpus, out, "--json").document["event_curve"]
    assert [point["threshold"] for point in curve] == [None, 0.2, 0.9]
    assert curve[0]["score"] == curve[2]["score"]
    assert curve[1]["score"]["pairs"] > curve[0]["score"]["pairs"]
    printed = stories("evaluate", corpus, out).out
    assert "stories alone" in printed
    assert "  at 0.2 " in printed


def test_thresholds_go_with_a_plain_replay(stories, write):
    corpus = write("corpus.jsonl", '{"id": "1", "title": "x", "story": "y"}')
    ran = stories("replay", corpus, "--baseline", "--event-link", "0.5")
    assert ran.status == 2
    assert "--event-link goes with a replay without --baseline" in ran.err
