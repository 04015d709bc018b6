"""Old vectors go, by whole days; articles, stories and links stay, and what needs the vectors says so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clustering.engine import Engine
from clustering.errors import InvalidInput, RunLocked

KEEP = timedelta(days=30)


@pytest.fixture
def aged(engine, sample_articles):
    """A few articles of fifty days ago, and the same again of yesterday."""
    now = datetime.now(UTC)
    some = sample_articles[:30]
    end = max(article.published_at for article in some)
    for number, back in enumerate((timedelta(days=50), timedelta(days=1))):
        moved = [
            replace(
                a,
                id=f"{a.id}-{number}",
                title=f"{a.title} ({number})",
                url=None,
                published_at=now - back - (end - a.published_at),
            )
            for a in some
        ]
        engine.play(moved)
    return engine


def days(engine) -> list[str]:
    rows = engine._database.session.connection.execute(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        "WHERE c.relkind IN ('r', 'p') ORDER BY 1"
    )
    return [row[0][-8:] for row in rows]


def told(engine) -> list:
    return sorted((story.id, story.size, story.headline) for story in engine.stories(limit=500))


def members(engine) -> dict[int, set[int]]:
    return {story.id: {a.id for a in story.articles} for story in engine.stories(limit=500)}


def test_old_days_go_and_stories_stay(aged):
    before, stories = days(aged), told(aged)
    assert len(stories) >= 4
    done = aged.prune(KEEP)
    cutoff = f"{datetime.now(UTC) - KEEP:%Y%m%d}"
    assert days(aged) == [day for day in before if day >= cutoff]
    assert done.partitions == len([day for day in before if day < cutoff]) > 0
    assert done.size_bytes > 8192 * done.partitions
    assert f"{done.before:%Y%m%d}" == cutoff
    assert told(aged) == stories
    assert aged.prune(KEEP).partitions == 0


def test_the_next_run_works_on(aged, sample_articles):
    aged.prune(KEEP)
    fresh = [
        replace(a, id=f"{a.id}-fresh", url=None, published_at=datetime.now(UTC))
        for a in sample_articles[30:40]
    ]
    assert aged.play(fresh).counts["encoded"] > 0


def test_what_needs_old_vectors_says_that_they_were_pruned(aged):
    first_run = aged._database.session.connection.execute(
        "SELECT min(run_id) FROM story_article"
    ).fetchone()[0]
    aged.prune(KEEP)
    stories = told(aged)
    with pytest.raises(InvalidInput, match="pruned"):
        aged.undo(first_run, by="ann", cascade=True)
    assert told(aged) == stories


def test_stories_whose_vectors_went_are_edited_and_explained(aged):
    old, *_, young = sorted(aged.stories(limit=500), key=lambda story: story.latest_time)
    article = aged.story(old.id).articles[0]
    aged.prune(KEEP)
    stories = members(aged)
    assert aged.why(article.id) is not None
    edit = aged.move(article.id, young.id, by="ann")
    assert article.id in {member.id for member in aged.story(young.id).articles}
    aged.undo(edit.run_id, by="ann")
    assert members(aged) == stories  # the headline is chosen anew, without a centroid


def test_days_that_stories_can_still_change_in_stay(engine, sample_articles):
    engine.play(sample_articles[:20])  # of a March that is long over
    before = days(engine)
    assert engine.prune(timedelta(days=10)).partitions == 0
    assert days(engine) == before


def test_a_span_in_which_stories_change_is_refused(engine):
    with pytest.raises(InvalidInput, match=r"120 hours; keep at least 5d"):
        engine.prune(timedelta(days=4))
    assert engine.prune(timedelta(days=5)).partitions == 0


def test_nothing_is_dropped_beside_a_run(aged, model_home):
    with (
        Engine.open(aged.dsn, home=model_home) as other,
        other._working("run"),
        pytest.raises(RunLocked),
    ):
        aged.prune(KEEP)


def test_every_space_is_pruned(aged):
    session = aged._database.session
    (name,) = [space.name for space in aged.spaces()]
    session.connection.execute(
        "INSERT INTO space (name, model, revision, dimension, prefix, recipe, alignment, fit, active, running_mean) "
        "SELECT 'second', model, revision, dimension, prefix, recipe, alignment, 'x', false, running_mean FROM space"
    )
    session.define("make_article_vectors", article_vectors="article_vector_second", dimension=384)
    day = datetime.now(UTC) - timedelta(days=70)
    session.define(
        "make_partition",
        partition=f"article_vector_second_{day:%Y%m%d}",
        article_vectors="article_vector_second",
        first=day.replace(hour=0, minute=0, second=0, microsecond=0),
        last=day.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1),
    )
    before = len(days(aged))
    done = aged.prune(timedelta(days=60))
    assert done.partitions == 1
    assert len(days(aged)) == before - 1
    assert name


def test_the_next_days_are_made_ahead(aged):
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert f"{tomorrow:%Y%m%d}" in days(aged)


def test_pruning_from_the_command_line(aged, stories):
    done = stories("db", "prune", "--keep", "30d", "--json")
    assert done.status == 0, done.err
    assert done.document["partitions"] > 0
    assert done.document["before"] == f"{(datetime.now(UTC) - KEEP).date()}"
    again = stories("db", "prune", "--keep", "400d")
    assert again.out.startswith("dropped 0 day partitions, 0.0 MiB; vectors from ")
    refused = stories("db", "prune", "--keep", "24h")
    assert refused.status == 2
    assert "keep at least 5d" in refused.err
