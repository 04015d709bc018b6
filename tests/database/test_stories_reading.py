from __future__ import annotations

import numpy as np
import pytest
from worlds import at, turned

from clustering.errors import NotFoundError
from clustering.stories import reading
from clustering.stories.reading import find_story, list_stories, whole_stories
from clustering.stories.refresh import recount_sources, refresh


def fold(world, copy: int, canonical: int) -> None:
    world.sql(
        "INSERT INTO duplicate_link (article_id, canonical_id, stage, score, threshold, run_id) "
        "VALUES (%s, %s, 'content', 1, 1, %s)",
        copy,
        canonical,
        world.run_id(),
    )


@pytest.fixture
def told(world):
    """Three stories: hours 0 to 1, 10 to 12 and 30; with the ids of their articles."""
    first = [world.add(turned(0, 0), 0), world.add(turned(3, 0), 1)]
    second = [world.add(turned(angle, 1), hours) for angle, hours in ((0, 10), (9, 11), (4, 12))]
    third = [world.add(turned(0, 2), 30), world.add(turned(3, 2), 30)]
    world.cluster()
    assert world.stories() == [first, second, third]
    return {world.story_of(ids[0]): ids for ids in (first, second, third)}


def test_the_latest_story_comes_first(world, told):
    assert [story.id for story in list_stories(world.session)] == list(told)[::-1]


@pytest.mark.parametrize(
    ("since", "until", "shown"),
    [
        (None, None, [3, 2, 1]),
        (1, None, [3, 2, 1]),
        (1.01, None, [3, 2]),
        (None, 10, [2, 1]),
        (None, 9.9, [1]),
        (11, 11, [2]),
        (31, None, []),
    ],
)
def test_stories_alive_in_a_span_of_time(world, told, since, until, shown):
    found = list_stories(
        world.session,
        since=None if since is None else at(since),
        until=None if until is None else at(until),
    )
    assert [list(told).index(story.id) + 1 for story in found] == shown


def test_least_size_and_greatest_number(world, told):
    second = list(told)[1]
    assert [story.id for story in list_stories(world.session, min_size=3)] == [second]
    assert list_stories(world.session, min_size=4) == []
    assert len(list_stories(world.session, most=2)) == 2
    assert list_stories(world.session, most=0) == []


def test_a_summary_says_what_the_story_is(world):
    ids = [
        world.add(turned(angle), hours, language=language, source=source, title=title)
        for angle, hours, language, source, title in (
            (0, 0, "en", "a", "Flood"),
            (10, 1, "bn", "b", "বন্যা"),
            (20, 2, "en", "a", "River"),
            (9, 2, "pt-BR", "c", "Enchente"),
        )
    ]
    world.cluster()
    (story,) = list_stories(world.session)
    assert (story.size, story.sources, story.languages) == (4, 3, ["bn", "en", "pt-BR"])
    assert (story.first_time, story.latest_time) == (at(0), at(2))
    assert (story.headline_id, story.headline) == (ids[1], "বন্যা")


def test_times_are_utc_whatever_the_sessions_zone(world, told):
    world.sql("SET timezone = 'Asia/Kolkata'")
    story = list_stories(world.session)[-1]
    assert story.first_time.utcoffset().total_seconds() == 0
    assert story.first_time == at(0)


def test_a_story_is_found_by_its_id(world, told):
    for story_id in told:
        assert find_story(world.session, story_id).id == story_id


def test_an_id_that_was_never_given_out_is_not_found(world, told):
    with pytest.raises(NotFoundError, match="there is no story 999"):
        find_story(world.session, 999)


def test_an_absorbed_id_leads_to_the_survivor_and_is_not_listed(world, told):
    first, second, third = told
    world.sql("DELETE FROM story_vector_tiny WHERE story_id IN (%s, %s)", second, third)
    run_id = world.run_id()
    for absorbed, survivor in ((third, second), (second, first)):
        changed = {"absorbed_id": [absorbed], "survivor_id": [survivor]}
        world.session.execute(
            "merge_stories", **changed, score=[0.97], threshold=0.95, run_id=run_id
        )
        world.session.execute("redirect_stories", **changed)
        world.session.execute("move_members", **changed)
    refresh(world.session, [first], world.calibration)
    for asked in told:
        assert find_story(world.session, asked).id == first
    assert [story.id for story in list_stories(world.session)] == [first]
    (whole,) = whole_stories(world.session, list_stories(world.session))
    assert [merged.story_id for merged in whole.absorbed] == [second, third]
    assert {merged.run_id for merged in whole.absorbed} == {run_id}
    assert whole.absorbed[0].score == pytest.approx(0.97)
    assert len(whole.articles) == 7


def test_whole_stories_have_their_articles_in_order_of_time(world, told):
    for story in whole_stories(world.session, list_stories(world.session)):
        assert [article.id for article in story.articles] == told[story.id]
        times = [article.event_time for article in story.articles]
        assert times == sorted(times)
        assert all(article.pass_name in {"match", "discover"} for article in story.articles)
        assert all(article.source == "feed" for article in story.articles)


def test_a_whole_storys_centroid_is_a_unit_vector_of_its_articles(world, told):
    stories = list(whole_stories(world.session, list_stories(world.session)))
    for story, angle, plane in zip(stories, (1.5, 13 / 3, 1.5), (2, 1, 0), strict=True):
        assert story.centroid.shape == (8,)
        assert story.centroid.dtype == np.float32
        assert np.linalg.norm(story.centroid) == pytest.approx(1, abs=2e-3)
        assert story.centroid @ turned(angle, plane) == pytest.approx(1, abs=2e-3)


def test_stories_are_read_a_page_at_a_time_and_none_is_lost(world, told, monkeypatch):
    monkeypatch.setattr(reading, "_PAGE", 2)
    summaries = list_stories(world.session)
    found = list(whole_stories(world.session, summaries))
    assert [story.id for story in found] == [summary.id for summary in summaries]
    assert list(whole_stories(world.session, [])) == []


def test_duplicates_stand_with_what_they_copy_and_count_as_sources(world, told):
    first = next(iter(told))
    canonical = told[first][0]
    copies = [world.article(2, source="copy"), world.article(1, source="wire", title="Same")]
    for copy in copies:
        fold(world, copy, canonical)
    assert find_story(world.session, first).sources == 1
    recount_sources(world.session, [canonical])
    summary = find_story(world.session, first)
    assert (summary.sources, summary.size) == (3, 2)
    (story,) = whole_stories(world.session, [summary])
    held = {article.id: article.duplicates for article in story.articles}
    assert [copy.id for copy in held[canonical]] == copies[::-1]
    assert held[told[first][1]] == ()
    wire = held[canonical][0]
    assert (wire.source, wire.title, wire.stage, wire.score) == ("wire", "Same", "content", 1)


def test_duplicates_known_before_a_story_is_made_count_as_its_sources(world):
    ids = [world.add(turned(angle), source="a") for angle in (0, 3)]
    fold(world, world.article(source="b"), ids[0])
    world.cluster()
    assert list_stories(world.session)[0].sources == 2


def test_a_retracted_duplicate_stands_nowhere(world, told):
    first = next(iter(told))
    fold(world, world.article(source="copy"), told[first][0])
    world.sql("UPDATE duplicate_link SET retracted_at = now()")
    recount_sources(world.session, told[first])
    (story,) = whole_stories(world.session, [find_story(world.session, first)])
    assert story.sources == 1
    assert all(article.duplicates == () for article in story.articles)


def test_recounting_writes_only_what_changed(world, told):
    before = world.snapshot()
    recount_sources(world.session, [article for ids in told.values() for article in ids])
    recount_sources(world.session, [])
    assert world.snapshot() == before


def test_refreshing_changes_no_value(world, told):
    columns = "SELECT * FROM story ORDER BY id", "SELECT * FROM story_vector_tiny ORDER BY story_id"
    before = [[tuple(map(str, row)) for row in world.sql(text)] for text in columns]
    refresh(world.session, [*told, *told], world.calibration)
    refresh(world.session, [], world.calibration)
    after = [[tuple(map(str, row)) for row in world.sql(text)] for text in columns]
    assert after == before


def test_assignments_put_duplicates_with_their_canonical_article(world, told):
    first = next(iter(told))
    lone = world.add(turned(50, 3), 5, guid="lone")
    world.cluster()
    fold(world, world.article(source="copy", guid="copied"), told[first][0])
    fold(world, world.article(source="copy", guid="copy of lone"), lone)
    found = {(row.source, row.guid): row.story_id for row in world.session.rows("assignments")}
    assert found["copy", "copied"] == first
    assert found["copy", "copy of lone"] is None
    assert found["feed", "lone"] is None
    assert len(found) == 10
