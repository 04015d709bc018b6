"""`stories replay --baseline`: the engine beside simpler systems, from files to a table."""

from __future__ import annotations

import json
from datetime import timedelta
from importlib.resources import files

import numpy as np
import pytest

from clustering.engine.comparison import ALIGNED, RAW, _Corpus, compare
from clustering.engine.progress import Silent
from clustering.errors import SourceError
from clustering.evaluation import evaluate_rows
from clustering.evaluation.baselines import published_passes
from clustering.settings import Settings

HOUR = timedelta(hours=1)


@pytest.fixture(scope="session")
def labelled():
    """Rows of a labelled corpus: forty dated articles of the sample day, each in a story."""
    text = (files("clustering.sample") / "sample_day.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    dated = {row["id"]: row for row in rows if row["published_at"] and row["story"]}
    return list(dated.values())[:40]


@pytest.fixture(scope="session")
def kept_vectors(tmp_path_factory):
    """A folder that the tests of this file keep vectors in, so that they encode once."""
    return tmp_path_factory.mktemp("vectors")


@pytest.fixture
def corpus(labelled, write):
    return write("day.jsonl", *(json.dumps(row, ensure_ascii=False) for row in labelled))


@pytest.fixture
def settings(dsn, model_home):
    return Settings(database=dsn, home=model_home)


def test_the_table_of_one_command(stories, corpus, kept_vectors):
    ran = stories("replay", corpus, "--baseline", "--vectors", kept_vectors)
    assert (ran.status, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "B-cubed F1 / pairwise F1"
    assert lines[1].split() == ["system", "space", "cosine", "day", "mean"]
    systems = [" ".join(line.split()[:3]) for line in lines[2:7]]
    assert systems == [
        "published passes raw",
        "published passes raw",
        "published passes aligned",
        "average linkage aligned",
        "this engine aligned",
    ]
    assert "0.7  " in lines[2]
    assert all("best" in line for line in lines[3:6])
    assert "points" in lines[8]
    assert list(kept_vectors.iterdir())
    assert stories("list", "--json").document == [], "a replay leaves the database alone"


def test_the_document_holds_every_score(stories, corpus, kept_vectors, labelled):
    other = corpus.with_name("half.jsonl")
    other.write_text("".join(f"{json.dumps(row)}\n" for row in labelled[:20]))
    ran = stories("replay", corpus, other, "--baseline", "--vectors", kept_vectors, "--json")
    assert ran.status == 0
    document = ran.document
    for system in document["systems"]:
        assert [found["name"] for found in system["corpora"]] == ["day", "half"]
        scores = [found["bcubed"]["f1"] for found in system["corpora"]]
        assert system["mean_bcubed_f1"] == pytest.approx(np.mean(scores))
        assert [found["coverage"]["scored"] for found in system["corpora"]] == [40, 20]
        assert [found["coverage"]["missing"] for found in system["corpora"]] == [0, 0]
    engine = document["systems"][-1]
    assert {placed["name"] for placed in engine["corpora"][0]["passes"]} >= {"discover"}
    raw_best = document["systems"][1]["mean_bcubed_f1"]
    assert document["gains"]["best_raw"] == pytest.approx(engine["mean_bcubed_f1"] - raw_best)


def test_baselines_are_what_the_library_gives(corpus, settings, kept_vectors, labelled):
    from clustering.engine.corpus import corpus_rows
    from clustering.engine.model import Model
    from clustering.engine.vectors import corpus_vectors

    found = compare([corpus], settings, HOUR, Silent(), kept_vectors)
    published, best_raw, best_passes, linkage, engine = found.systems
    assert found.names == ("day",)
    assert (published.threshold, published.chosen) == (0.7, False)
    assert [system.space for system in found.systems] == [RAW, RAW, ALIGNED, ALIGNED, ALIGNED]
    assert best_raw.mean_bcubed > published.mean_bcubed
    assert engine.threshold is None
    articles = [row.article for row in corpus_rows(corpus)]
    raw = corpus_vectors(Model(settings.model, settings.home), articles, kept_vectors, Silent())
    hours = np.array([article.published_at.timestamp() / 3600 for article in articles])
    labels = published_passes(raw, hours, best_raw.threshold)
    by_hand = [
        {"id": row["id"], "story_id": label}
        for row, label in zip(labelled, labels.tolist(), strict=True)
    ]
    assert best_raw.evaluations == (evaluate_rows(labelled, by_hand),)
    better = max(best_passes.mean_bcubed, linkage.mean_bcubed)
    assert found.gains["best_aligned"] == pytest.approx(engine.mean_bcubed - better)
    assert found.gains["as_published"] == pytest.approx(engine.mean_bcubed - published.mean_bcubed)


def test_an_id_that_comes_again_is_clustered_once(labelled, write, settings, kept_vectors):
    rows = [*labelled[:20], labelled[0]]
    path = write("again.jsonl", *(json.dumps(row) for row in rows))
    found = compare([path], settings, HOUR, Silent(), kept_vectors)
    assert {system.evaluations[0].coverage.scored for system in found.systems} == {20}


def test_unlabelled_rows_are_clustered_and_not_scored(labelled, write, settings, kept_vectors):
    rows = [{**row, "story": None} if n < 8 else row for n, row in enumerate(labelled[:20])]
    path = write("part.jsonl", *(json.dumps(row) for row in rows))
    found = compare([path], settings, HOUR, Silent(), kept_vectors)
    for system in found.systems:
        assert system.evaluations[0].coverage.scored == 12
        assert system.evaluations[0].coverage.unlabelled == 8


def test_a_threshold_is_chosen_by_labelled_articles_alone(tmp_path):
    gold = np.array([0, 0, 1, -1, -1])
    corpus = _Corpus(tmp_path, list("abcde"), np.zeros(5), gold, {})
    assert corpus.bcubed(np.array([4, 4, 5, 6, 7])) == 1, "unlabelled ones are no story"
    assert corpus.bcubed(np.array([4, 4, 5, 5, 4])) == 1, "nor a mistake"
    assert corpus.bcubed(np.array([4, 6, 5, 5, 4])) < 1


def test_a_corpus_without_labels_is_refused(labelled, write, settings, kept_vectors):
    path = write("bare.jsonl", *(json.dumps({**row, "story": None}) for row in labelled[:5]))
    with pytest.raises(SourceError, match=r"bare\.jsonl has no article with a story"):
        compare([path], settings, HOUR, Silent(), kept_vectors)


def test_gold_of_a_file_with_a_malformed_row_is_not_trusted(
    labelled, write, settings, kept_vectors
):
    path = write("odd.jsonl", *(json.dumps(row) for row in labelled[:5]), "no json")
    with pytest.raises(SourceError, match=r"odd\.jsonl:6: not JSON"):
        compare([path], settings, HOUR, Silent(), kept_vectors)


def test_rows_that_are_refused_exit_3(labelled, write, stories, kept_vectors):
    undated = {**labelled[0], "id": "undated", "published_at": None}
    path = write("odd.jsonl", *(json.dumps(row) for row in [*labelled[:20], undated]))
    ran = stories("replay", path, "--baseline", "--vectors", kept_vectors, "--json")
    assert ran.status == 3
    assert "odd.jsonl:21: no published_at" in ran.err
    assert len(ran.document["refusals"]) == 1
    for system in ran.document["systems"]:
        assert system["corpora"][0]["coverage"]["missing_examples"] in (["undated"], [])
        assert system["corpora"][0]["coverage"]["unplaced"] >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--baseline", "--assignments", "out.jsonl"), "without --baseline"),
        (("{corpus}",), "several files"),
    ],
)
def test_options_that_do_not_go_together_exit_2(stories, corpus, arguments, message):
    ran = stories("replay", corpus, *(part.format(corpus=corpus) for part in arguments))
    assert ran.status == 2
    assert message in ran.err


def test_a_plain_replay_keeps_vectors_too(stories, corpus, tmp_path):
    out = tmp_path / "out.jsonl"
    for _ in range(2):
        ran = stories(
            "replay", corpus, "--vectors", tmp_path / "kept", "--assignments", out, "--json"
        )
        assert ran.status == 0
    assert len(list((tmp_path / "kept").iterdir())) == 1
    assert ran.document["seconds"]["encode"] < 2, "nothing was encoded the second time"
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(row.keys() == {"id", "story_id", "event_id", "pass"} for row in rows)
    assert {row["pass"] for row in rows} <= {"match", "attach", "discover", "duplicate", None}
    assert all((row["pass"] is None) == (row["story_id"] is None) for row in rows)
    assert {"match", "discover"} <= {row["pass"] for row in rows}
