"""Quality as a ratchet: replays with the default settings stay above floors; lowering one is a visible act."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import timedelta
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from clustering.engine.corpus import replay, write_assignments
from clustering.engine.progress import Silent
from clustering.evaluation import evaluate
from clustering.settings import Settings

FLOORS = json.loads(Path(__file__).with_name("floors.json").read_text("utf-8"))
HOUR = timedelta(hours=1)


@pytest.fixture
def replayed(server, model_home, tmp_path):
    """Replay a file hour by hour with the defaults and score it against its own labels."""

    def scores(name, path):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert digest == FLOORS[name]["sha256"], "other data: the floor says nothing about it"
        settings = Settings(database=server.dsn("postgres"), home=model_home)
        played = replay(path, settings, HOUR, Silent())
        write_assignments(played, tmp_path / "assignments.jsonl")
        return evaluate(path, tmp_path / "assignments.jsonl")

    return scores


def reached(name, evaluation):
    """Compare with a floor; the figure shows in the output of a run with -rP."""
    print(
        f"{name}: B-cubed F1 {evaluation.bcubed.f1:.4f}, pairwise F1 {evaluation.pairwise.f1:.4f}"
    )
    return evaluation.bcubed.f1 >= FLOORS[name]["bcubed_f1"]


def events_reach(name, events):
    """Compare events with their floors: those asked for, and what look-alikes leave of precision."""
    print(f"{name}: events {events}")
    floors = FLOORS[name]
    far = floors.get("event_far_recall")
    assert far is None or events.far_recall >= far
    return events.precision >= floors["event_precision"]


def test_the_sample_day_reaches_its_floor(replayed):
    with as_file(files("clustering.sample") / "sample_day.jsonl") as path:
        assert reached("sample", replayed("sample", path))


def test_look_alike_events_reach_their_floor(replayed, data):
    evaluation = replayed("ecbplus", data / "ecbplus.jsonl")
    assert reached("ecbplus", evaluation)
    assert events_reach("ecbplus", evaluation.events)


@pytest.mark.slow
def test_og2021_reaches_its_floor_within_six_minutes(replayed, data):
    start = time.monotonic()
    evaluation = replayed("og2021", data / "og2021.jsonl")
    assert reached("og2021", evaluation)
    assert events_reach("og2021", evaluation.events)
    assert time.monotonic() - start <= 6 * 60


@pytest.mark.slow
def test_ntrex_reaches_its_floor(replayed, data):
    assert reached("ntrex", replayed("ntrex", data / "ntrex.jsonl"))
