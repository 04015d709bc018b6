"""The workbench shows what the engine does."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from clustering import Workbench
from clustering.engine.progress import Silent
from clustering.engine.rehearsing import rehearsed
from clustering.errors import CalibrationError, SourceError
from clustering.evaluation.scores import bcubed
from clustering.settings import Settings


@pytest.fixture(scope="module")
def settings(server, model_home):
    return Settings(database=server.dsn("postgres"), home=model_home)


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    return tmp_path_factory.mktemp("workbench")


@pytest.fixture(scope="module")
def bench(settings, kept):
    return Workbench.open(settings=settings, vectors=kept)


def test_rows_belong_together_and_duplicates_are_gone(bench):
    count = len(bench.articles)
    assert bench.raw.shape == bench.aligned.shape == (count, 384)
    assert len(bench.hours) == len(bench.languages) == len(bench.gold) == count
    assert count < len(bench.corpus.gold)
    assert (np.diff(bench.hours) >= 0).all()
    for article, hours, language in zip(bench.articles, bench.hours, bench.languages, strict=True):
        since = article.published_at - bench.articles[0].published_at
        assert since / timedelta(hours=1) == pytest.approx(hours - bench.hours[0])
        if article.language:
            assert article.language.split("-")[0] == language


def test_pairs_are_those_of_a_slow_double_loop(bench):
    pairs = bench.pairs(within_hours=3)
    slow = [
        (one, other)
        for one in range(len(bench.hours))
        for other in range(one + 1, len(bench.hours))
        if bench.hours[other] - bench.hours[one] <= 3
    ]
    assert len(pairs.same) == len(slow)
    for row, (one, other) in list(enumerate(slow))[::97]:
        assert pairs.raw[row] == pytest.approx(bench.raw[one] @ bench.raw[other], abs=1e-5)
        assert pairs.aligned[row] == pytest.approx(
            bench.aligned[one] @ bench.aligned[other], abs=1e-5
        )
        assert pairs.same[row] == (bench.gold[one] == bench.gold[other])
        assert pairs.languages[row].tolist() == sorted(
            [bench.languages[one], bench.languages[other]]
        )
        assert pairs.hours[row] == pytest.approx(bench.hours[other] - bench.hours[one])


def test_alignment_spreads_the_cosines(bench):
    pairs = bench.pairs()
    assert pairs.raw.min() > 0.6
    assert np.median(pairs.aligned[~pairs.same]) < 0.2 < np.median(pairs.aligned[pairs.same])


def test_scores_are_those_of_the_rehearsal(bench, settings, kept, tmp_path):
    score = bench.score()
    assert score == bcubed(bench.corpus.gold, bench.corpus.partition(bench.calibration))
    assert score.f1 > 0.95
    (trial,) = bench.sweep("merge", [bench.calibration.merge])
    assert trial.score == score.f1
    loose, strict = bench.sweep("merge", [0.4, 1.0])
    assert loose.calibration == replace(bench.calibration, merge=0.4)
    assert loose.score < score.f1
    assert strict.score < score.f1


def test_a_value_out_of_range_is_refused(bench):
    with pytest.raises(CalibrationError, match="match is 2"):
        bench.sweep("match", [2])


def test_partitions_have_a_story_for_each_article(bench):
    stories = bench.partition()
    assert stories.shape == bench.gold.shape
    for story in np.unique(stories):
        assert len(set(bench.gold[stories == story].tolist())) == 1
    apart = bench.partition(replace(bench.calibration, match=1, attach=1, link=1, merge=1))
    assert len(np.unique(apart)) == len(apart)


def test_a_corpus_of_ones_own_is_read_and_one_without_labels_refused(settings, tmp_path):
    path = tmp_path / "own.jsonl"
    row = '{{"id": "{0}", "title": "Title {0}", "published_at": "2026-03-01T0{0}:00:00Z"{1}}}\n'
    path.write_text("".join(row.format(n, ', "story": "s"') for n in range(3)))
    bench = Workbench.open(path, settings=settings)
    assert [article.title for article in bench.articles] == ["Title 0", "Title 1", "Title 2"]
    assert bench.gold.tolist() == [0, 0, 0]
    path.write_text("".join(row.format(n, ', "story": null') for n in range(3)))
    with pytest.raises(SourceError, match="no article with a story"):
        Workbench.open(path, settings=settings)


def test_it_is_the_corpus_that_tuning_sees(bench, settings, kept, tmp_path):
    from importlib.resources import as_file, files

    with as_file(files("clustering.sample") / "sample_day.jsonl") as path:
        corpus = rehearsed(path, settings, timedelta(hours=1), Silent(), kept)
    assert np.array_equal(corpus.centred, bench.corpus.centred)
    assert corpus.ids.tolist() == bench.corpus.ids.tolist()
