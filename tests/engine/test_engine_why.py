"""Reasons, worked out anew on the sample day: they agree with what the passes decided."""

from __future__ import annotations

import pytest
from command_line import CommandLine
from psycopg import sql

from clustering.engine import Engine
from clustering.errors import NotFoundError
from clustering.store.session import Session


@pytest.fixture(scope="module")
def played(server, template_database, database_numbers, model_home, sample_articles):
    """An engine that has played the sample day; nobody writes."""
    name = f"why_{next(database_numbers)}"
    session = Session(server.dsn("postgres"))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    session.connection.execute(copy.format(sql.Identifier(name), sql.Identifier(template_database)))
    session.close()
    with Engine.open(server.dsn(name), home=model_home) as engine:
        engine.play(sample_articles)
        yield engine


@pytest.fixture(scope="module")
def largest(played):
    return max(played.stories(), key=lambda story: story.size)


def test_members_score_best_in_their_own_story(played, largest):
    right = 0
    for article in largest.articles:
        found = played.why(article.id)
        own = [candidate for candidate in found.candidates if candidate.own]
        assert [candidate.story_id for candidate in own] == [largest.id]
        assert own[0].reason == "it is in this story"
        right += found.candidates[0].own
        assert f"in story {largest.id} by {article.pass_name}" in found.placement
    assert right > 0.8 * largest.size


def test_a_score_is_its_cosine_less_the_penalties(played, largest):
    for candidate in played.why(largest.articles[-1].id).candidates:
        off = sum(candidate.parts[1:])
        assert candidate.score == pytest.approx(candidate.parts.similarity - off)
        assert candidate.threshold == played.calibration.match


def test_the_cosine_leaves_the_article_itself_out(played, largest):
    import numpy as np

    article = largest.articles[0]
    session = played._database.session
    rows = session.connection.execute(
        f"SELECT article_id, aligned FROM {session.part('article_vectors')}"
    ).fetchall()
    vectors = {key: vector.to_numpy().astype(np.float32) for key, vector in rows}
    others = [a.id for a in largest.articles if a.id != article.id and a.pass_name != "attach"]
    expected = np.mean([vectors[article.id] @ vectors[other] for other in others])
    (own,) = [candidate for candidate in played.why(article.id).candidates if candidate.own]
    assert own.parts.similarity == pytest.approx(float(expected), abs=0.01)


def test_a_story_that_is_named_is_compared_whatever_its_time(played, largest):
    other = min(played.stories(), key=lambda story: story.first_time)
    found = played.why(largest.articles[0].id, other.id)
    assert other.id in [candidate.story_id for candidate in found.candidates]


def test_reasons_name_time_score_and_duplicates(played):
    reasons = set()
    for story in played.stories():
        for article in story.articles:
            reasons |= {c.reason.split(",")[0] for c in played.why(article.id).candidates}
            for copy in article.duplicates:
                text = played.why(copy.id).placement
                assert text == f"folded into article {article.id} by the stage {copy.stage}"
    assert {"it is in this story", "scores too little"} <= reasons
    assert any("hours" in reason for reason in reasons)


def test_what_is_not_there_is_named(played, largest):
    with pytest.raises(NotFoundError, match="there is no article 98765"):
        played.why(98765)
    with pytest.raises(NotFoundError):
        played.why(largest.articles[0].id, 98765)


def test_the_command_prints_what_the_engine_says(played, largest):
    stories = CommandLine(played.dsn, played.settings.home)
    article = largest.articles[0]
    ran = stories("why", article.id)
    assert ran.status == 0, ran.err
    assert f"#{largest.id}" in ran.out
    assert "it is in this story" in ran.out
    document = stories("why", article.id, largest.id, "--json").document
    assert document["article_id"] == article.id
    assert stories("why", 98765).status == 1
