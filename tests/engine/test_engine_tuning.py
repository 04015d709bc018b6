from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, replace
from datetime import timedelta
from importlib.resources import as_file, files

import numpy as np
import pytest
from command_line import CommandLine

from clustering.engine.model import Model
from clustering.engine.pairs import LabelledPairs, labelled_pairs
from clustering.engine.progress import Silent
from clustering.engine.tuning import Effort, Labels, calibration_text, tune, write_calibration
from clustering.errors import SourceError
from clustering.settings import DEFAULT_MODEL, Settings
from clustering.stories.calibration import load_calibration

HOUR = timedelta(hours=1)
EFFORT = Effort(rounds=2, trials=6)


@pytest.fixture
def settings(server, model_home):
    return Settings(database=server.dsn("postgres"), home=model_home)


@pytest.fixture(scope="module")
def sample_day():
    with as_file(files("clustering.sample") / "sample_day.jsonl") as path:
        yield path


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("tuning")


@pytest.fixture(scope="module")
def pairs_file(tmp_path_factory):
    """Two reports of each of two events in two languages, and all that can be mixed of them."""
    floods = ["Floods hit the port of Kestrel Bay", "Inundaciones en el puerto de Kestrel Bay"]
    strikes = ["Train drivers walk out for a second day", "Los maquinistas siguen en huelga"]
    rows = [(*floods, "same"), (*strikes, 1)]
    rows += [(flood, strike, "different") for flood in floods for strike in strikes]
    path = tmp_path_factory.mktemp("pairs") / "hand.jsonl"
    keys = ("a_title", "b_title", "label")
    path.write_text("".join(json.dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def tuned(server, model_home, sample_day, kept, pairs_file):
    given = Settings(database=server.dsn("postgres"), home=model_home)
    labels = Labels((sample_day,), (pairs_file,), kept)
    return tune(labels, given, HOUR, Silent(), EFFORT)


def test_every_setting_is_tried_and_both_are_scored_on_the_later_part(tuned):
    assert tuned.trials == EFFORT.rounds * EFFORT.trials
    for score in (*tuned.before, *tuned.after):
        assert score.corpus == "sample_day"
        assert 0.5 < score.interval.low <= score.bcubed_f1 <= score.interval.high <= 1


def test_what_is_written_is_a_calibration_and_says_where_it_comes_from(tuned, tmp_path):
    path = tmp_path / "own.toml"
    write_calibration(calibration_text(tuned, "multilingual-e5-small"), path)
    assert load_calibration("any", path) == tuned.plateau.calibration
    text = path.read_text()
    for name, digest in tuned.digests.items():
        assert f"{name} (sha256 {digest})" in text
    assert set(tuned.digests) == {"sample_day.jsonl", "hand.jsonl"}


def test_the_result_is_plain_json(tuned):
    found = json.loads(json.dumps(tuned.to_dict()))
    assert found["calibration"] == asdict(tuned.plateau.calibration)
    assert found["after"][0]["interval"] == list(tuned.after[0].interval)


def test_the_same_search_again_finds_the_same(tuned, settings, sample_day, kept, pairs_file):
    again = tune(Labels((sample_day,), (pairs_file,), kept), settings, HOUR, Silent(), EFFORT)
    assert again == tuned


def test_a_file_that_cannot_be_written_is_named(tuned, tmp_path):
    with pytest.raises(SourceError, match=r"cannot write .*gone.*name another file"):
        write_calibration(calibration_text(tuned, "any"), tmp_path / "gone" / "own.toml")


def test_a_corpus_of_one_moment_cannot_be_parted(settings, tmp_path):
    path = tmp_path / "moment.jsonl"
    row = {"title": "A title", "published_at": "2026-03-01T05:00:00Z", "story": "s"}
    path.write_text("".join(json.dumps(row | {"id": str(number)}) + "\n" for number in range(3)))
    with pytest.raises(SourceError, match="moment has too few labelled articles"):
        tune(Labels((path,)), settings, HOUR, Silent(), EFFORT)


def test_pairs_are_told_apart_by_link(settings, pairs_file):
    pairs = labelled_pairs(pairs_file, Model(settings.model, settings.home), Silent())
    calibration = load_calibration(DEFAULT_MODEL)
    assert pairs.same.tolist() == [True, True, False, False, False, False]
    assert pairs.one_language.tolist() == [False, False, True, False, False, True]
    assert pairs.accuracy(calibration) > 0.7
    assert pairs.accuracy(replace(calibration, link=0.99)) == 0.5
    assert pairs.accuracy(replace(calibration, link=-0.99)) == 0.5


def test_both_kinds_of_pairs_count_alike_and_one_language_counts_against():
    cosines, same = np.array([0.6, 0.5, 0.55, 0.1, 0.1]), np.array([1, 1, 0, 0, 0], bool)
    tongues = np.array([0, 0, 1, 0, 0], bool)
    pairs = LabelledPairs("hand", cosines.astype(np.float32), tongues, same)
    calibration = replace(load_calibration("multilingual-e5-small"), link=0.5, language_penalty=0)
    assert pairs.accuracy(calibration) == pytest.approx((1 + 2 / 3) / 2)
    assert pairs.accuracy(replace(calibration, language_penalty=0.1)) == 1


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[1, 2]", r"bad\.jsonl:1: not a JSON object"),
        ('{"a_title": "x", "b_title": "y", "label": "maybe"}', r"bad\.jsonl:1: label is 'maybe'"),
        ('{"a_title": "x", "b_title": " ", "label": 1}', r"bad\.jsonl:1: b_title is missing"),
        ('{"a_title": "x", "b_title": "y", "label": 1}', "pairs of both kinds"),
    ],
)
def test_malformed_pairs_are_refused_by_line(settings, tmp_path, line, complaint):
    path = tmp_path / "bad.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(SourceError, match=complaint):
        labelled_pairs(path, Model(settings.model, settings.home), Silent())


def test_the_command_writes_a_file_that_a_replay_takes(
    server, model_home, sample_day, kept, tmp_path
):
    stories = CommandLine(server.dsn("postgres"), model_home)
    own = tmp_path / "own.toml"
    search = ("--vectors", kept, "--rounds", 1, "--trials", 3, "--out", own)
    done = stories("tune", sample_day, *search)
    assert done.status == 0, done.err
    assert "sample_day" in done.out
    assert tomllib.loads(own.read_text())["neighbours"] == 50
    played = stories("replay", sample_day, "--vectors", kept, "--calibration", own)
    assert played.status == 3, played.err  # one row of the sample day has no date
