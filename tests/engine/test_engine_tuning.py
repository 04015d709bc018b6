from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files

import numpy as np
import psycopg
import pytest
from command_line import CommandLine

from clustering import Article
from clustering.engine import Engine
from clustering.engine.model import Model
from clustering.engine.pairs import LabelledPairs, labelled_pairs
from clustering.engine.progress import Silent
from clustering.engine.tuning import Labels, calibration_text, tune, write_calibration
from clustering.errors import SourceError
from clustering.settings import DEFAULT_MODEL, Settings
from clustering.stories.calibration import load_calibration
from clustering.stories.search import Effort

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
    labels = Labels((sample_day,), (pairs_file,), vectors=kept)
    return tune(labels, given, HOUR, Silent(), EFFORT)


def test_every_setting_is_tried_and_both_are_scored_on_the_later_part(tuned):
    assert tuned.trials == EFFORT.rounds * EFFORT.trials
    for score in (*tuned.before.corpora, *tuned.after.corpora):
        assert score.corpus == "sample_day"
        assert 0.5 < score.interval.low <= score.bcubed_f1 <= score.interval.high <= 1


def test_what_is_written_is_a_calibration_and_says_where_it_comes_from(tuned, tmp_path):
    path = tmp_path / "own.toml"
    write_calibration(calibration_text(tuned), path)
    assert load_calibration("any", path) == tuned.plateau.calibration
    text = path.read_text()
    for name, digest in tuned.digests.items():
        assert f"{name} (sha256 {digest})" in text
    assert set(tuned.digests) == {"sample_day.jsonl", "hand.jsonl"}


def test_the_result_is_plain_json(tuned):
    found = json.loads(json.dumps(tuned.to_dict()))
    assert found["calibration"] == asdict(tuned.plateau.calibration)
    assert found["after"]["corpora"][0]["interval"] == list(tuned.after.corpora[0].interval)
    assert found["after"]["pairs"][0]["pairs"] == "hand"
    assert found["texts"] == {DEFAULT_MODEL: tuned.plateau.surrounding}


def test_the_same_search_again_finds_the_same(tuned, settings, sample_day, kept, pairs_file):
    again = tune(
        Labels((sample_day,), (pairs_file,), vectors=kept), settings, HOUR, Silent(), EFFORT
    )
    assert again == tuned


def test_a_file_that_cannot_be_written_is_named(tuned, tmp_path):
    with pytest.raises(SourceError, match=r"cannot write .*gone.*name another file"):
        write_calibration(calibration_text(tuned), tmp_path / "gone" / "own.toml")


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
    pairs = hand_pairs([0.6, 0.5, 0.55, 0.1, 0.1], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0])
    calibration = replace(load_calibration(DEFAULT_MODEL), link=0.5, language_penalty=0)
    assert pairs.accuracy(calibration) == pytest.approx((1 + 2 / 3) / 2)
    assert pairs.accuracy(replace(calibration, language_penalty=0.1)) == 1


def hand_pairs(cosines, same, one_language=None, hours=None):
    nothing = [0] * len(same)
    return LabelledPairs(
        "hand",
        np.array(cosines, np.float32),
        np.array(hours or nothing, np.float32),
        np.array(one_language or nothing, bool),
        np.array(same, bool),
    )


def test_hours_count_against_a_pair():
    pairs = hand_pairs([0.6, 0.58], [1, 0], hours=[0, np.expm1(4)])
    calibration = replace(load_calibration(DEFAULT_MODEL), link=0.55, time_penalty=0)
    assert pairs.accuracy(calibration) == 0.5
    assert pairs.accuracy(replace(calibration, time_penalty=0.01)) == 1


def test_every_other_pair_of_a_kind_is_kept_back():
    seen, back = hand_pairs([0.1, 0.2, 0.3, 0.4, 0.5], [1, 0, 1, 0, 1]).parted()
    assert seen.cosines.tolist() == pytest.approx([0.1, 0.2, 0.5])
    assert back.cosines.tolist() == pytest.approx([0.3, 0.4])
    assert back.same.tolist() == [True, False]
    with pytest.raises(SourceError, match="hand: tuning needs two pairs"):
        hand_pairs([0.1, 0.2, 0.3], [1, 0, 1]).parted()


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


TITLES = (
    "Floods hit the port of Kestrel Bay",
    "Inundaciones en el puerto de Kestrel Bay",
    "Port of Kestrel Bay under water after the storm",
    "Train drivers walk out for a second day",
    "Los maquinistas siguen en huelga",
)


MORNING = datetime.now(UTC) - timedelta(hours=5)


@pytest.fixture
def judged(dsn, model_home):
    """Settings of a database in which somebody decided six pairs of five articles."""
    given = Settings(database=dsn, home=model_home)
    with Engine.open(settings=given) as engine, psycopg.connect(dsn) as connection:
        engine.ingest(
            Article(title=title, url=f"https://example.org/{number}", published_at=MORNING)
            for number, title in enumerate(TITLES)
        )
        ids = dict(connection.execute("SELECT title, id FROM article").fetchall())
        flood, spanish, storm, strike, huelga = (ids[title] for title in TITLES)
        for one, other in [(flood, spanish), (flood, storm), (strike, huelga)]:
            engine.judge(one, other, "same", by="ana")
        for one, other in [(flood, strike), (spanish, huelga), (storm, strike)]:
            engine.judge(one, other, "different", by="ana")
    return given


def test_judgements_alone_move_link_and_what_follows_it(judged):
    tuning = tune(Labels(judgements=True), judged, HOUR, Silent(), Effort(2, 10))
    start, found = load_calibration(DEFAULT_MODEL), tuning.plateau.calibration
    assert found.merge - start.merge == pytest.approx(found.link - start.link, abs=1e-9)
    assert found.story_gap_hours == start.story_gap_hours
    assert [score.pairs for score in tuning.after.pairs] == ["judgements"]
    assert not tuning.after.corpora
    assert tuning.trials == 20


def test_the_command_takes_judgements(judged):
    done = CommandLine(judged.database, judged.home)(
        "tune", "--judgements", "--rounds", 1, "--trials", 3
    )
    assert done.status == 0, done.err
    assert "judgements" in done.out
    assert "On pairs kept back of judgements" in done.out


def test_without_labels_there_is_nothing_to_tune_on(settings):
    with pytest.raises(SourceError, match="nothing to tune on: name labelled files"):
        tune(Labels(), settings, HOUR, Silent(), EFFORT)


def test_a_queue_without_verdicts_is_refused(dsn, model_home):
    empty = Settings(database=dsn, home=model_home)
    with pytest.raises(SourceError, match="the review queue needs pairs of both kinds"):
        tune(Labels(judgements=True), empty, HOUR, Silent(), EFFORT)


def test_texts_of_several_lengths_are_compared(settings, pairs_file):
    labels = Labels(pairs=(pairs_file,), lede_chars=(0, 600))
    tuning = tune(labels, settings, HOUR, Silent(), Effort(1, 3))
    assert list(tuning.texts) == [f"{DEFAULT_MODEL}:0", DEFAULT_MODEL]
    assert tuning.model in tuning.texts
    assert tuning.trials == 6
