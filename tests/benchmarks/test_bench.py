"""The benchmarks at a small size: ratios and qualities, never seconds."""

from __future__ import annotations

import json
from itertools import pairwise

import bench
import numpy as np
import pytest
import stream
import timed_runs
import timed_windows
from bench import KEYS, Sizes, measure, table
from stream import Batch, Stream, Writer, slices
from timed_peers import singletons

from clustering.ingest.jsonl import read_rows

SMALL = Sizes(stored=6_600, stored_before=4_400, live=2_200, new=100, day=60, peers=600, texts=24)


@pytest.fixture
def small_days(monkeypatch):
    """Days of 1,100 articles, so that a history of some thousands has many."""
    monkeypatch.setattr(stream, "A_DAY", 1_100)


def test_every_part_measures_what_it_says(server, model_home, small_days, tmp_path):
    found = measure(server, model_home, SMALL)
    (tmp_path / "found.json").write_text(json.dumps(found))
    assert found.keys() >= set(KEYS)
    assert found["encode_ratio"] > 0.8  # never slower than plain, but for what a shared core does
    assert found["encode_cosine_min"] >= 0.998
    assert found["knn_recall"] >= 0.99
    assert found["knn_cost_ratio_1m_50k"] < 2
    assert found["cluster_peak_mib"] < 128
    assert found["passes_bcubed"] >= 0.9
    assert found["published_recall"] <= found["knn_recall"]
    assert sum(found["day_counts"][name] for name in ("new", "duplicate")) == SMALL.day
    assert "published SQL" in table(found)


def test_a_stream_is_the_same_again_and_in_order():
    day, again = (Stream(seed=5).day(3, 400) for _ in range(2))
    assert day.vectors.tobytes() == again.vectors.tobytes()
    assert day.times == sorted(day.times)
    assert np.linalg.norm(day.vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert len(set(day.stories.tolist())) > 50


def test_articles_of_one_story_are_near_and_others_far():
    day = Stream(seed=5).day(0, 400)
    cosines = day.vectors @ day.vectors.T
    same = day.stories[:, None] == day.stories
    np.fill_diagonal(same, val=False)
    assert cosines[same].mean() == pytest.approx(0.72, abs=0.05)
    assert abs(cosines[day.stories[:, None] != day.stories].mean()) < 0.05


def test_a_history_ends_where_a_day_begins(small_days):
    batches = list(Stream().before(2, 2_500))
    assert [len(batch.times) for batch in batches] == [300, 1_100, 1_100]
    assert all(one.times[-1] < other.times[0] for one, other in pairwise(batches))
    assert batches[-1].times[-1] < stream.NOW + stream.timedelta(days=2)
    parts = slices(batches[-1], 4)
    assert sum(len(part.times) for part in parts) == 1_100


def test_a_settled_history_is_one_that_the_passes_accept(session, small_days):
    stream.use(session)
    batch = Stream().day(0, 300)
    ids = Writer(session).settle(batch)
    rows = session.connection.execute(
        "SELECT article_id, story_id FROM story_article WHERE pass <> 'none' ORDER BY article_id"
    ).fetchall()
    truth = dict(zip(ids, batch.stories.tolist(), strict=True))
    assert len({(row.story_id, truth[row.article_id]) for row in rows}) == len(
        {row.story_id for row in rows}
    )
    waiting = session.value("count_pending", as_of=stream.NOW + stream.timedelta(days=9))
    assert waiting == 0


def test_exact_neighbours_are_those_of_every_pair():
    day = Stream().day(0, 120)
    window = timed_windows.window_of(range(1, 121), day, queries=5)
    found, _ = timed_windows.exact(window)
    for place, near in zip(window.asking.tolist(), found, strict=True):
        cosines = [
            (window.vectors[place] @ other, number)
            for number, other in enumerate(window.vectors, start=1)
            if number != place + 1
        ]
        assert near == {number for _, number in sorted(cosines)[-timed_windows.NEIGHBOURS :]}
    assert timed_windows.recall([{1, 2}], [{2, 3}]) == 0.5


def test_articles_without_a_story_are_alone():
    assert len(set(singletons(np.array([-1, -1, 3, 3])).tolist())) == 3
    assert len(set(singletons([None, 7, 7, None]).tolist())) == 3


def test_a_day_of_texts_has_no_two_alike(tmp_path):
    timed_runs.write_day(tmp_path / "day.jsonl", 200)
    rows = [row for _, row in read_rows(tmp_path / "day.jsonl")]
    assert len({row["body"] for row in rows}) == len({row["title"] for row in rows}) == 200
    assert [row["published_at"] for row in rows] == sorted(row["published_at"] for row in rows)


def test_the_report_names_its_machine():
    assert bench.machine().keys() >= {"cpu", "python", "torch", "numpy"}
    assert Batch._fields == ("times", "vectors", "stories", "languages")
