from __future__ import annotations

from dataclasses import replace
from itertools import chain

import psycopg
import pytest
from worlds import FAR_FUTURE, STEP, at, turned

from clustering.stories.near import BATCH_ARTICLES
from clustering.stories.passes import count_pending, next_slice


def test_two_articles_that_nobody_placed_make_a_story(world):
    one, other = world.add(turned(0)), world.add(turned(10), 0.5)
    counts = world.cluster()
    assert world.stories() == [[one, other]]
    assert counts == {
        "stories": 1,
        "discovered": 2,
        "matched": 0,
        "merges": 0,
        "attached": 0,
        "unplaced": 0,
    }
    world.check()


def test_articles_too_far_apart_make_none_and_it_is_said_how_near_they_were(world):
    one, other = world.add(turned(0)), world.add(turned(40), 0.5)
    counts = world.cluster()
    assert world.stories() == []
    assert counts["unplaced"] == 2
    for article in (one, other):
        row = world.placement(article)
        assert (row.story_id, row.placed_in, row.pass_name) == (None, None, "none")
        assert row.threshold == pytest.approx(0.9)


def test_an_article_that_waits_makes_a_story_with_a_later_one(world):
    one = world.add(turned(0))
    assert world.cluster()["unplaced"] == 1
    other = world.add(turned(10), 5)
    counts = world.cluster()
    assert world.stories() == [[one, other]]
    assert (counts["stories"], counts["discovered"], counts["unplaced"]) == (1, 2, 0)


def test_an_article_joins_a_story(world):
    founders = [world.add(turned(angle)) for angle in (0, 10)]
    world.cluster()
    story = world.story_of(founders[0])
    late = world.add(turned(5), 3)
    counts = world.cluster()
    assert world.stories() == [[*founders, late]]
    assert world.story_of(late) == story
    assert (counts["matched"], counts["stories"]) == (1, 0)
    world.check()


def test_a_placement_says_pass_score_threshold_nearest_and_run(world):
    founders = [world.add(turned(angle)) for angle in (0, 10)]
    world.cluster()
    late = world.add(turned(9), 3)
    world.cluster()
    row = world.placement(late)
    assert row.pass_name == "match"
    assert row.placed_in == row.story_id == world.story_of(founders[0])
    cosines = [float(turned(9) @ turned(angle)) for angle in (0, 10)]
    assert row.score == pytest.approx(sum(cosines) / 2, abs=1e-3)
    assert row.threshold == pytest.approx(0.9)
    assert row.nearest_id == founders[1]
    assert row.run_id == world.one("SELECT max(id) FROM run")
    founder = world.placement(founders[0])
    assert (founder.pass_name, founder.nearest_id) == ("discover", founders[1])
    assert founder.score == pytest.approx(float(turned(0) @ turned(10)), abs=2e-3)
    assert founder.run_id < row.run_id


def test_the_best_story_wins(world):
    near = [world.add(turned(angle)) for angle in (0, 4)]
    far = [world.add(turned(angle)) for angle in (44, 48)]
    world.cluster()
    article = world.add(turned(25), 2)
    world.cluster(match=0.8)
    assert world.story_of(article) == world.story_of(far[0]) != world.story_of(near[0])


@pytest.mark.parametrize(("hours", "joins"), [(18, True), (18.1, False)])
def test_the_gap_to_a_storys_latest_article_is_limited(world, hours, joins):
    founders = [world.add(turned(0)) for _ in range(2)]
    world.cluster()
    late = world.add(turned(0), hours)
    world.cluster()
    assert (world.story_of(late) == world.story_of(founders[0])) is joins


def test_a_storys_age_is_limited_however_fresh_its_latest_article(world):
    ids = [world.add(turned(0), hours) for hours in (0, 0, 12, 24, 36, 36.5)]
    world.cluster()
    assert world.stories() == [ids[:5]]
    assert world.placement(ids[5]).pass_name == "none"
    world.check()


def test_what_outlives_a_story_begins_another(world):
    ids = [world.add(turned(0), hours) for hours in (0, 0, 12, 24, 36, 37, 38)]
    world.cluster(merge_size_penalty=1)
    assert world.stories() == [ids[:5], ids[5:]]
    world.check()


def test_a_story_may_grow_backwards_by_the_gap(world):
    founders = [world.add(turned(0), hours) for hours in (20, 20)]
    world.cluster()
    too_early = world.add(turned(0), 1.9)
    world.cluster()
    assert world.story_of(too_early) is None
    early = world.add(turned(0), 2)
    world.cluster()
    assert world.story_of(early) == world.story_of(founders[0])


def test_what_joined_no_story_joins_when_one_grows_toward_it(world):
    """The waiting article is too far from the founders, not from the story that grew."""
    founders = [world.add(turned(angle)) for angle in (0, 10)]
    world.cluster()
    waiting = world.add(turned(35), 1)
    assert world.cluster()["unplaced"] == 1
    assert world.placement(waiting).pass_name == "none"
    grown = [world.add(turned(angle), 2) for angle in (22, 24)]
    counts = world.cluster()
    assert world.stories() == [[*founders, waiting, *grown]]
    assert (counts["matched"], counts["unplaced"]) == (3, 0)
    row = world.placement(waiting)
    assert (row.pass_name, row.nearest_id) == ("match", grown[1])
    assert row.score >= row.threshold
    world.check()


@pytest.mark.parametrize(("hours", "joins"), [(1, True), (0, False)])
def test_only_articles_of_the_window_are_matched_again(world, hours, joins):
    [world.add(turned(angle), 10) for angle in (0, 10)]
    waiting = world.add(turned(37), hours)
    world.cluster()
    [world.add(turned(angle), 18.5) for angle in (22, 24)]
    assert world.cluster()["matched"] == 2 + joins
    assert (world.story_of(waiting) is not None) is joins


def attached(world, angle=35.0, hours=1.0, **columns):
    """Two founders, and an article that just misses them."""
    founders = [world.add(turned(angle_)) for angle_ in (0, 10)]
    article = world.add(turned(angle), hours, **columns)
    counts = world.cluster(attach=0.8)
    return founders, article, counts


def test_what_just_misses_is_shown_in_its_best_story_and_leaves_the_centroid(world):
    founders, article, counts = attached(world, language="ja", source="other")
    assert world.stories() == [[*founders, article]]
    assert (counts["matched"], counts["attached"], counts["unplaced"]) == (0, 1, 0)
    row = world.placement(article)
    assert (row.pass_name, row.nearest_id) == ("attach", founders[1])
    assert 0.8 <= row.score < 0.9
    assert row.threshold == pytest.approx(0.8)
    (story,) = world.sql("SELECT size, languages, sources, latest_time FROM story")
    assert (story.size, story.languages, story.sources) == (3, ["en", "ja"], 2)
    assert story.latest_time == at(1)
    (kept,) = world.sql("SELECT size, latest_time, languages FROM story_vector_tiny")
    assert (kept.size, kept.latest_time, kept.languages) == (2, at(0), {"en": 1.0})
    world.check()


def test_an_attached_article_does_not_carry_its_story_on(world):
    """Its story would else be live for another 18 hours."""
    founders, _, _ = attached(world, hours=17)
    late = world.add(turned(5), 19)
    world.cluster(attach=0.8)
    assert world.story_of(late) != world.story_of(founders[0])


def test_an_attached_article_becomes_a_member_when_its_story_grows_toward_it(world):
    founders, article, _ = attached(world)
    grown = [world.add(turned(angle), 2) for angle in (22, 24)]
    world.cluster(attach=0.8)
    assert world.placement(article).pass_name == "match"
    assert world.stories() == [[*founders, article, *grown]]
    assert world.one("SELECT size FROM story_vector_tiny") == 5
    world.check()


def test_an_attached_article_leaves_for_one_that_it_fits_better(world):
    founders, article, _ = attached(world)
    twin = world.add(turned(40), 3)
    counts = world.cluster(attach=0.8)
    assert world.stories() == [founders, [article, twin]]
    assert counts["stories"] == 1
    assert world.one("SELECT size FROM story WHERE id = %s", world.story_of(founders[0])) == 2
    world.check()


def test_an_attached_article_moves_to_a_story_that_it_fits_better(world):
    founders, article, _ = attached(world)
    others = [world.add(turned(angle), 2) for angle in (64, 66)]
    world.cluster(attach=0.8, link=0.99)
    assert world.stories() == [founders, [article, *others]]
    assert world.placement(article).pass_name == "attach"
    world.check()


def test_an_attached_article_stays_where_it_fits_best(world):
    founders, article, _ = attached(world)
    score = world.placement(article).score
    others = [world.add(turned(angle), 2) for angle in (69, 71)]
    world.cluster(attach=0.8, link=0.99)
    assert world.stories() == [[*founders, article], others]
    assert world.placement(article).score == score


def test_what_is_attached_goes_along_when_its_story_is_absorbed(world):
    older = [world.add(turned(angle)) for angle in (0, 2)]
    founders = [world.add(turned(angle), 1) for angle in (24, 26)]
    article = world.add(turned(52), 2)
    world.cluster(merge=1, match=0.95, link=0.95, attach=0.85)
    assert world.stories() == [older, [*founders, article]]
    world.add(turned(25), 3)
    world.cluster(merge=0.9, match=0.95, link=0.95, attach=0.85)
    assert world.story_of(article) == world.story_of(older[0])
    assert world.placement(article).pass_name == "attach"
    world.check()


def test_languages_of_a_story_are_kept_without_their_script_and_region(world):
    founders = [world.add(turned(0), language=tag) for tag in ("pt", "pt-BR", "zh-Hans", "und")]
    world.cluster()
    (languages,) = world.sql("SELECT languages FROM story_vector_tiny")[0]
    assert languages == {"pt": 0.5, "zh": 0.25, "und": 0.25}
    assert world.story_of(founders[0])


def test_one_language_speaks_against_a_match(world):
    [world.add(turned(angle), language="ja") for angle in (0, 2)]
    world.cluster()
    own = world.add(turned(20), 1, language="ja")
    foreign = world.add(turned(-20), 1, language="bn")
    world.cluster(language_penalty=0.08)
    assert world.story_of(own) is None
    assert world.story_of(foreign) is not None


def test_a_late_article_finds_what_came_after_it(world):
    later = world.add(turned(0), 10)
    assert world.cluster()["unplaced"] == 1
    late = world.add(turned(5), 1)
    world.cluster()
    assert world.stories() == [[later, late]]
    world.check()


def test_a_late_article_looks_no_further_ahead_than_the_gap(world):
    """Its one neighbour is one that it can make a story with, not a nearer one of another day."""
    near, far = world.add(turned(5), 10), world.add(turned(0), 30)
    assert world.cluster()["unplaced"] == 2
    late = world.add(turned(0), 1)
    world.cluster(neighbours=1)
    assert world.stories() == [[near, late]]
    assert world.story_of(far) is None


def test_a_late_article_never_founds_a_story_with_one_that_still_waits(world):
    world.add(turned(90), 30)
    world.cluster()
    late, waiting = world.add(turned(0), 1), world.add(turned(0), 8)
    world.cluster(as_of=at(2))
    assert world.stories() == []
    assert world.placement(waiting).pass_name == "pending"
    assert world.placement(late).pass_name == "none"


def test_time_between_an_article_and_a_story_lowers_its_score(world):
    founders = [world.add(turned(0)) for _ in range(2)]
    world.cluster()
    soon, later = world.add(turned(20), 1), world.add(turned(-20), 16)
    world.cluster(time_penalty=0.03)
    assert world.story_of(soon) == world.story_of(founders[0])
    assert world.story_of(later) is None


def test_a_chain_of_articles_is_cut(world):
    ids = [world.add(turned(angle)) for angle in (0, 5, 28, 33)]
    world.cluster(chain_slack=0.01)
    assert world.stories() == [ids[:2], ids[2:]]
    world.check()


def test_two_stories_that_come_close_merge_and_the_younger_id_redirects(world):
    one = [world.add(turned(angle)) for angle in (0, 4)]
    other = [world.add(turned(angle)) for angle in (40, 44)]
    world.cluster()
    first, second = world.story_of(one[0]), world.story_of(other[0])
    assert first < second
    bridge = [world.add(turned(21), 1), world.add(turned(23), 1)]
    counts = world.cluster(merge=0.88)
    assert counts["merges"] == 1
    assert world.stories() == [sorted([*one, *other, *bridge])]
    assert {world.story_of(a) for a in (*one, *other, *bridge)} == {first}
    assert world.one("SELECT merged_into FROM story WHERE id = %s", second) == first
    (merge,) = world.sql("SELECT * FROM story_merge")
    assert (merge.absorbed_id, merge.survivor_id) == (second, first)
    assert merge.score >= merge.threshold == pytest.approx(0.88)
    world.check()


def test_a_merge_keeps_where_each_article_was_placed(world):
    one = [world.add(turned(angle)) for angle in (0, 2)]
    other = [world.add(turned(angle)) for angle in (21, 23)]
    world.cluster(link=0.99)
    second = world.story_of(other[0])
    assert second != world.story_of(one[0])
    world.add(turned(20), 1)
    world.cluster(merge=0.9)
    assert world.placement(other[0]).placed_in == second
    assert world.placement(other[0]).story_id == world.story_of(one[0])


def test_ids_redirect_through_a_chain_of_merges(world):
    """Story 3 becomes part of 2 and later 2 of 1: the id of 3 must then lead to 1."""
    one = [world.add(turned(0)) for _ in range(2)]
    two = [world.add(turned(40)) for _ in range(2)]
    three = [world.add(turned(70)) for _ in range(2)]
    few = {"centroid_members": 2, "match": 0.95, "link": 0.95}
    world.cluster(**few)
    first, second, third = (world.story_of(ids[0]) for ids in (one, two, three))
    assert first < second < third
    world.add(turned(55), 1)
    world.cluster(**few | {"match": 0.9, "merge": 0.8})
    assert world.one("SELECT merged_into FROM story WHERE id = %s", third) == second
    for hour, angle in ((2, 35), (3, 30), (4, 25), (5, 20)):
        for _ in range(2):
            world.add(turned(angle), hour)
        world.cluster(**few | {"match": 0.8, "merge": 0.93})
    assert world.one("SELECT merged_into FROM story WHERE id = %s", second) == first
    assert world.one("SELECT merged_into FROM story WHERE id = %s", third) == first
    assert len(world.stories()) == 1
    survivors = world.sql("SELECT absorbed_id, survivor_id FROM story_merge ORDER BY made_at")
    assert [tuple(row) for row in survivors] == [(third, second), (second, first)]


def test_merging_goes_on_until_nothing_merges(world):
    pairs = [[world.add(turned(angle)) for _ in range(2)] for angle in (0, 12, 24, 36)]
    counts = world.cluster(link=0.99, match=0.99, merge=0.9)
    assert counts["stories"] == 4
    assert counts["merges"] == 3
    assert world.stories() == [sorted(chain.from_iterable(pairs))]
    world.check()


def test_stories_too_far_in_time_do_not_merge(world):
    early = [world.add(turned(0), 0) for _ in range(2)]
    late = [world.add(turned(0), 40) for _ in range(2)]
    world.cluster()
    assert world.stories() == [early, late]
    world.check()


def test_slices_are_hours_and_come_in_order(world):
    ids = [world.add(turned(0), hours) for hours in (1.5, 0.2, 0.9, 1.0)]
    first = next_slice(world.session, FAR_FUTURE, STEP)
    assert list(first.times) == [ids[1], ids[2]]
    assert (first.first, first.last) == (at(0.2), at(0.9))
    world.cluster(as_of=at(0.95))
    second = next_slice(world.session, FAR_FUTURE, STEP)
    assert list(second.times) == [ids[3], ids[0]]


def test_what_lies_after_the_time_asked_for_waits(world):
    ids = [world.add(turned(0), hours) for hours in (0, 0.1, 0.5)]
    assert count_pending(world.session, at(0.2)) == 2
    world.cluster(as_of=at(0.2))
    assert world.stories() == [ids[:2]]
    assert count_pending(world.session, FAR_FUTURE) == 1
    assert next_slice(world.session, at(0.2), STEP) is None
    world.cluster()
    assert world.stories() == [ids]


def test_a_slice_larger_than_a_batch_is_one_slice(world):
    count = BATCH_ARTICLES + 30
    ids = [world.article(0.5) for _ in range(count)]
    plane = [number % 4 for number in range(count)]
    world.embed([(a, at(0.5), turned(0, p)) for a, p in zip(ids, plane, strict=True)])
    world.calibration = replace(world.calibration, neighbours=100, centroid_members=500)
    counts = world.cluster()
    assert counts["discovered"] == count
    assert len(world.stories()) == 4
    world.check()


def test_nothing_that_waits_writes_nothing(world):
    for angle in (0, 5, 60):
        world.add(turned(angle))
    world.cluster()
    before = world.snapshot()
    assert world.cluster() == {}
    assert count_pending(world.session, FAR_FUTURE) == 0
    assert world.snapshot() == before


def test_a_pass_that_fails_takes_its_slice_back_and_no_other(world):
    early = [world.add(turned(0)) for _ in range(2)]
    late = [world.add(turned(0, plane=1), 1.5) for _ in range(2)]
    world.sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.first_time >= '2026-03-01 01:00+00' THEN RAISE 'refused'; END IF; RETURN NEW; END $$"
    )
    world.sql("CREATE TRIGGER refuse BEFORE INSERT ON story FOR EACH ROW EXECUTE FUNCTION refuse()")
    with pytest.raises(psycopg.errors.RaiseException, match="refused"):
        world.cluster()
    assert world.stories() == [early]
    assert [world.placement(a).pass_name for a in late] == ["pending", "pending"]
    world.sql("DROP TRIGGER refuse ON story")
    world.cluster()
    assert world.stories() == [early, late]
    world.check()


def test_settings_of_a_slice_do_not_outlive_it(world):
    before = world.one("SHOW hnsw.ef_search"), world.one("SHOW hnsw.iterative_scan")
    world.add(turned(0))
    world.cluster()
    assert (world.one("SHOW hnsw.ef_search"), world.one("SHOW hnsw.iterative_scan")) == before


def test_an_article_is_in_one_story_or_in_none(world):
    article = world.add(turned(0))
    with pytest.raises(psycopg.errors.UniqueViolation):
        world.sql("INSERT INTO story_article (article_id, event_time) VALUES (%s, now())", article)
    with pytest.raises(psycopg.errors.CheckViolation):
        world.sql("UPDATE story_article SET pass = 'match' WHERE article_id = %s", article)


def test_only_the_latest_members_make_the_centroid(world):
    world.calibration = replace(world.calibration, centroid_members=2)
    for hours, angle in ((0, 0), (0, 2), (1, 10), (2, 20), (3, 30)):
        world.add(turned(angle), hours)
    world.cluster()
    assert len(world.stories()) == 1
    (centroid,) = world.one("SELECT centroid FROM story_vector_tiny").to_numpy()[None, :2]
    assert centroid @ turned(25)[:2] == pytest.approx(1, abs=2e-3)
    world.check()
