"""Figures that tell whether a threshold drifts, a story swallows a day, a decision was close."""

from __future__ import annotations

import pytest

from clustering.engine import Engine


@pytest.fixture(scope="module")
def played(server, template_database, database_numbers, model_home, sample_articles):
    """An engine that has played the sample day, shared by the tests here: none of them writes."""
    from psycopg import sql

    from clustering.store.session import Session

    name = f"stats_{next(database_numbers)}"
    session = Session(server.dsn("postgres"))
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
    session.connection.execute(copy.format(sql.Identifier(name), sql.Identifier(template_database)))
    session.close()
    with Engine.open(server.dsn(name), home=model_home) as engine:
        engine.play(sample_articles)
        yield engine


def test_the_largest_stories_come_with_their_share_of_the_days(played):
    largest = played.stats(days=30)["largest"]
    sizes = sorted((story.size for story in played.summaries(min_size=1)), reverse=True)
    assert [row["articles"] for row in largest] == sizes[: len(largest)]
    totals = played.stats()["totals"]
    clustered = totals["placed"] + totals["unplaced"]
    for row in largest:
        story = played.story(row["story"])
        assert row["headline"] == story.headline
        assert row["share"] == pytest.approx(story.size / clustered)
        assert row["hours"] == pytest.approx(
            (story.latest_time - story.first_time).total_seconds() / 3600, abs=0.06
        )


def test_a_share_counts_only_what_was_placed_lately(played):
    for row in played.stats(days=1)["largest"]:
        story = played.story(row["story"])
        end = max(s.latest_time for s in played.summaries(min_size=1))
        late = [a for a in story.articles if (end - a.event_time).total_seconds() <= 86400]
        assert late
        assert row["share"] >= len(late) / len(played.assignments())


def test_the_closest_calls_are_those_of_least_margin(played):
    closest = played.stats(days=30)["closest"]
    margins = [row["margin"] for row in closest]
    assert margins == sorted(margins)
    assert margins[0] >= 0
    every = [
        (a.score - a.threshold, a.id)
        for story in played.stories(min_size=1)
        for a in story.articles
        if a.score is not None and a.score >= a.threshold
    ]
    placed = [row for row in closest if row["article"] is not None]
    found = {article: margin for margin, article in every}
    for row in placed:
        assert row["margin"] == pytest.approx(found[row["article"]], abs=1e-6)
    if len(placed) == len(closest):
        assert margins[-1] <= sorted(margin for margin, _ in every)[len(closest) - 1] + 1e-6


def test_the_command_prints_both(played):
    from command_line import CommandLine

    done = CommandLine(played.dsn, played.settings.home)("stats", "--days", 30)
    assert done.status == 0, done.err
    assert "largest stories" in done.out
    assert "closest calls" in done.out
    document = CommandLine(played.dsn, played.settings.home)("stats", "--json").document
    assert {"largest", "closest", "placements", "bands"} <= set(document)
