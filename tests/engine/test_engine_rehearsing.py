"""The fast replay and the real engine, side by side."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib.resources import as_file, files

import numpy as np
import pytest

from clustering.engine.corpus import replay
from clustering.engine.progress import Silent
from clustering.engine.rehearsing import Rehearsed, rehearsed
from clustering.errors import SourceError
from clustering.evaluation.files import gold_articles, read_rows
from clustering.evaluation.scores import adjusted_mutual_information, bcubed
from clustering.settings import DEFAULT_MODEL, Settings
from clustering.stories.calibration import load_calibration

HOUR = timedelta(hours=1)


@pytest.fixture(scope="session")
def kept_vectors(tmp_path_factory):
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture
def settings(server, model_home):
    return Settings(database=server.dsn("postgres"), home=model_home)


@pytest.fixture(scope="session")
def sample_day():
    with as_file(files("clustering.sample") / "sample_day.jsonl") as path:
        yield path


def engine_partition(path, settings, kept_vectors) -> dict[str, object]:
    played = replay(path, settings, HOUR, Silent(), kept_vectors)
    return {str(row["id"]): row["story_id"] or f"alone {row['id']}" for row in played.assignments}


def labelled_ids(path) -> list[str]:
    return list(
        dict.fromkeys(row.id for row in gold_articles(read_rows(path)) if row.story is not None)
    )


def both(path, settings, kept_vectors) -> tuple[list[object], np.ndarray]:
    """The stories of the labelled rows from the engine and from the rehearsal."""
    found = engine_partition(path, settings, kept_vectors)
    corpus = rehearsed(path, settings, HOUR, Silent(), kept_vectors)
    rehearsal = corpus.partition(load_calibration(DEFAULT_MODEL))
    return [str(found[name]) for name in labelled_ids(path)], rehearsal


def test_the_rehearsal_of_the_sample_day_gives_the_engines_stories(
    sample_day, settings, kept_vectors
):
    engine, rehearsal = both(sample_day, settings, kept_vectors)
    assert len(set(engine)) > 15
    assert adjusted_mutual_information(engine, rehearsal) == pytest.approx(1)


def test_the_rehearsal_of_look_alike_events_gives_the_engines_stories(data, settings, kept_vectors):
    engine, rehearsal = both(data / "ecbplus.jsonl", settings, kept_vectors)
    assert adjusted_mutual_information(engine, rehearsal) == pytest.approx(1)


@pytest.mark.slow
def test_the_rehearsal_of_og2021_gives_the_engines_stories(data, settings, kept_vectors):
    """Its windows hold more than the index finds exactly, so that a few articles may differ."""
    engine, rehearsal = both(data / "og2021.jsonl", settings, kept_vectors)
    assert bcubed(engine, rehearsal).f1 > 0.97


def test_duplicates_are_where_their_canonical_article_is(sample_day, settings, kept_vectors):
    corpus = rehearsed(sample_day, settings, HOUR, Silent(), kept_vectors)
    assert len(np.unique(corpus.places)) < len(corpus.places)
    stories = corpus.partition(load_calibration(DEFAULT_MODEL))
    for place in np.unique(corpus.places):
        assert len(set(stories[corpus.places == place].tolist())) == 1


def hand_made(hours, gold) -> Rehearsed:
    vectors = np.eye(4, dtype=np.float32)[np.asarray(gold) % 4]
    return Rehearsed(
        name="tiny",
        hours=np.asarray(hours, float),
        every_hours=1.0,
        languages=np.array(["en"] * len(hours)),
        raw=vectors,
        centred=vectors,
        ids=np.array([f"row {place}" for place in range(len(hours))]),
        places=np.arange(len(hours)),
        gold=np.asarray(gold),
    )


def test_parts_keep_their_labels_and_lose_nobody():
    corpus = hand_made([0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2])
    early, late = corpus.between(-np.inf, 3), corpus.between(3, np.inf)
    assert early.gold.tolist() == [0, 0, 1]
    assert late.gold.tolist() == [1, 2, 2]
    assert late.places.tolist() == [0, 1, 2]
    assert late.ids.tolist() == ["row 3", "row 4", "row 5"]
    assert [step.start for step in late.stream.steps] == [0, 1, 2]


def test_slices_begin_at_whole_hours():
    corpus = hand_made([0.1, 0.9, 1.0, 5.5], [0, 0, 1, 1])
    spans = [(step.start, step.stop) for step in corpus.stream.steps]
    assert spans == [(0, 2), (2, 3), (3, 4)]


def test_a_corpus_without_labels_is_refused_by_name(tmp_path, settings):
    path = tmp_path / "bare.jsonl"
    row = {"id": "1", "title": "A title", "published_at": "2026-03-01T00:00:00Z", "story": None}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(SourceError, match=r"bare\.jsonl has no article with a story"):
        rehearsed(path, settings, HOUR, Silent())
