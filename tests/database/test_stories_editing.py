"""What editors decide about stories, and that no later pass goes against it."""

from __future__ import annotations

import pytest
from worlds import at, turned

from clustering.errors import InvalidInput, NotFoundError
from clustering.stories.editing import Editor
from clustering.stories.reading import find_story


@pytest.fixture
def edit(world):
    """Carry out one edit in a run of its own; returns the story."""

    def edited(name, *arguments, by="ann"):
        run_id = world.run_id()
        with world.session.transaction():
            world.session.execute("sign_run", run_id=run_id, editor=by)
            found = getattr(Editor(world.session, world.calibration, run_id, by), name)(*arguments)
        world.check()
        return found

    return edited


def story(world, degrees=0, hours=0, size=2, plane=0):
    """Articles that become one story; returns them."""
    articles = [world.add(turned(degrees, plane), hours) for _ in range(size)]
    world.cluster(merge_size_penalty=1)
    return articles


def verdicts(world):
    rows = world.sql("SELECT a_id, b_id, verdict FROM judgement ORDER BY a_id, b_id")
    return {(row.a_id, row.b_id): row.verdict for row in rows}


def test_a_moved_article_is_where_the_editor_put_it(world, edit):
    one, other = story(world, 0, size=3), story(world, 90)
    target = world.story_of(other[0])
    assert edit("move", one[0], target) == target
    assert world.stories() == sorted([one[1:], [one[0], *other]])
    row = world.placement(one[0])
    assert (row.pass_name, row.story_id, row.placed_in) == ("editor", target, target)
    assert (row.score, row.threshold) == (None, None)
    assert world.one("SELECT editor FROM run WHERE id = %s", row.run_id) == "ann"


def test_a_move_is_kept_as_judgements(world, edit):
    one, other = story(world, 0, size=3), story(world, 90)
    edit("move", one[0], world.story_of(other[0]))
    headline = find_story(world.session, world.story_of(other[0])).headline_id
    assert headline in other
    assert verdicts(world) == {
        (one[0], one[1]): "different",
        (one[0], one[2]): "different",
        tuple(sorted((one[0], other[0]))): "same",
    }


def test_no_pass_takes_a_moved_article_back_or_merges_the_two_stories(world, edit):
    one, other = story(world, 0, size=3), story(world, 30, 1, size=3)
    target = world.story_of(other[0])
    assert target != world.story_of(one[0])
    edit("move", one[0], target)
    for hours, degrees in ((2, 0), (3, 12), (3, 12), (4, 20)):
        world.add(turned(degrees), hours)
        world.cluster(merge=0.5, match=0.5, attach=0.5)
    world.check()
    assert world.story_of(one[0]) == target
    assert world.story_of(one[1]) != target
    assert world.one("SELECT count(*) FROM story_merge") == 0


def test_without_the_move_the_two_would_merge(world):
    one, other = story(world, 0, size=3), story(world, 30, 1, size=3)
    world.add(turned(12), 2)
    world.cluster(merge=0.5, match=0.5, attach=0.5)
    assert world.story_of(one[0]) == world.story_of(other[0])


def test_an_article_in_no_story_and_one_that_waits_can_be_moved(world, edit):
    one = story(world)
    alone = world.add(turned(90), 1)
    world.cluster()
    waiting = world.add(turned(90, 1), 2)
    for article in (alone, waiting):
        edit("move", article, world.story_of(one[0]))
    assert world.stories() == [[*one, alone, waiting]]
    assert world.cluster() == {}, "what an editor placed waits no more"


def test_a_move_within_the_story_makes_an_attached_article_a_member(world, edit):
    one = story(world)
    loose = world.add(turned(40), 1)
    world.cluster(attach=0.5)
    assert world.placement(loose).pass_name == "attach"
    edit("move", loose, world.story_of(one[0]))
    assert world.placement(loose).pass_name == "editor"
    assert "different" not in verdicts(world).values()


def test_the_last_member_leaves_an_empty_story_whose_id_stays(world, edit):
    one, other = story(world), story(world, 90)
    left = world.story_of(one[0])
    for article in one:
        edit("move", article, world.story_of(other[0]))
    empty = find_story(world.session, left)
    assert (empty.id, empty.size, empty.sources, empty.languages) == (left, 0, 0, [])
    assert world.one("SELECT count(*) FROM story_vector_tiny WHERE story_id = %s", left) == 0
    edit("move", other[0], left)
    assert find_story(world.session, left).size == 1


def test_what_was_only_attached_waits_again_when_the_members_are_gone(world, edit):
    one, other = story(world), story(world, 0, 0, plane=1)
    loose = world.add(turned(50), 1)
    world.cluster(attach=0.5)
    for article in one:
        edit("move", article, world.story_of(other[0]))
    assert world.placement(loose).pass_name == "pending"
    world.cluster()
    assert world.placement(loose).pass_name == "none"


def test_a_story_is_split(world, edit):
    one = story(world, size=5)
    before = world.story_of(one[0])
    made = edit("split", before, one[:2])
    assert made != before
    assert world.stories() == sorted([one[:2], one[2:]])
    assert world.story_of(one[4]) == before
    assert set(verdicts(world).values()) == {"different"}
    assert len(verdicts(world)) == 2 * 3


def test_no_pass_brings_together_what_was_split(world, edit):
    one = story(world, size=6)
    edit("split", world.story_of(one[0]), one[:2])
    parted = world.stories()
    for hours in (1, 2, 3):
        world.add(turned(0), hours)
        world.cluster()
        world.check()
    assert world.one("SELECT count(*) FROM story_merge") == 0
    assert world.story_of(one[0]) == world.story_of(one[1]) != world.story_of(one[2])
    assert {world.story_of(a) for a in one[2:]} == {world.story_of(one[2])}
    assert len(world.stories()) == len(parted) == 2


def test_what_was_split_and_waits_again_is_matched_nowhere_against_a_verdict(world, edit):
    one = story(world, size=4)
    edit("split", world.story_of(one[0]), one[:2])
    world.sql(
        "UPDATE story_article SET pass = 'pending', story_id = NULL, placed_in = NULL, run_id = NULL"
    )
    for table in ("past_placement", "story_vector_tiny"):
        world.sql(f"DELETE FROM {table}")
    world.sql("UPDATE story SET size = 0")
    world.cluster()
    for article in one[:2]:
        assert world.story_of(article) not in {world.story_of(other) for other in one[2:]}
    assert world.story_of(one[0]) == world.story_of(one[1]) is not None


def test_a_verdict_of_the_review_queue_holds_two_articles_apart_in_stories_too(world):
    one, other, third = (world.add(turned(0), hours) for hours in (0, 0.1, 0.2))
    world.sql(
        "INSERT INTO judgement (a_id, b_id, verdict, judged_by) VALUES (%s, %s, 'different', 'bob')",
        one,
        other,
    )
    world.cluster()
    assert world.story_of(one) != world.story_of(other)
    assert world.story_of(third) in (world.story_of(one), world.story_of(other))


def test_a_verdict_about_a_duplicate_is_one_about_its_canonical_article(world):
    founders = story(world)
    copy = world.article(0.5)
    world.sql(
        "INSERT INTO duplicate_link (article_id, canonical_id, stage, score, threshold, run_id) "
        "VALUES (%s, %s, 'url', 1, 1, 1)",
        copy,
        founders[0],
    )
    late = world.add(turned(0), 1)
    world.sql(
        "INSERT INTO judgement (a_id, b_id, verdict, judged_by) VALUES (%s, %s, 'different', 'bob')",
        copy,
        late,
    )
    world.cluster()
    assert world.story_of(late) is None


def test_two_that_were_judged_different_do_not_join_one_story_at_once(world):
    founders = story(world)
    near, far = world.add(turned(2), 1), world.add(turned(8), 1)
    world.sql(
        "INSERT INTO judgement (a_id, b_id, verdict, judged_by) VALUES (%s, %s, 'different', 'bob')",
        near,
        far,
    )
    world.cluster()
    assert world.story_of(near) == world.story_of(founders[0])
    assert world.story_of(far) is None


def test_two_stories_are_merged_and_stay_so(world, edit):
    one, other = story(world), story(world, 0, 1, plane=1)
    first, second = world.story_of(one[0]), world.story_of(other[0])
    assert edit("merge", second, first) == second
    assert world.stories() == [[*one, *other]]
    assert find_story(world.session, first).id == second
    (row,) = world.sql("SELECT * FROM story_merge")
    assert (row.absorbed_id, row.survivor_id, row.score, row.threshold) == (
        first,
        second,
        None,
        None,
    )
    world.add(turned(0), 2)
    world.cluster(match=0.1)
    world.check()
    assert len(world.stories()) == 1


def test_a_merge_replaces_the_verdicts_of_a_split(world, edit):
    one = story(world, size=4)
    made = edit("split", world.story_of(one[0]), one[:2])
    edit("merge", world.story_of(one[3]), made, by="bob")
    assert set(verdicts(world).values()) == {"same"}
    assert world.stories() == [one]
    assert world.one("SELECT count(*) FROM past_judgement") == 4


def test_an_edit_of_an_absorbed_story_is_one_of_its_survivor(world, edit):
    one, other = story(world), story(world, 0, plane=1)
    third = story(world, 0, plane=2)
    first, second = world.story_of(one[0]), world.story_of(other[0])
    edit("merge", first, second)
    assert edit("move", third[0], second) == first
    made = edit("split", second, [other[0]])
    assert world.story_of(other[0]) == made != first
    assert find_story(world.session, second).id == first


@pytest.mark.parametrize("kind", ["missing article", "missing story", "absorbed", "all", "outside"])
def test_what_cannot_be_done_is_refused(world, edit, kind):
    one, other = story(world), story(world, 0, plane=1)
    first, second = world.story_of(one[0]), world.story_of(other[0])
    calls = {
        "missing article": ("move", (987, first), NotFoundError, "no article 987"),
        "missing story": ("merge", (first, 987), NotFoundError, "no story 987"),
        "absorbed": ("merge", (first, first), InvalidInput, "both story"),
        "all": ("split", (first, one), InvalidInput, "would stay"),
        "outside": ("split", (first, [other[0]]), InvalidInput, f"not in story {first}"),
    }
    name, arguments, error, text = calls[kind]
    before = world.stories(), verdicts(world)
    with pytest.raises(error, match=text):
        edit(name, *arguments)
    assert (world.stories(), verdicts(world)) == before
    assert second == world.story_of(other[0])


def test_duplicates_and_what_is_not_encoded_are_refused(world, edit):
    one = story(world)
    copy, bare = world.article(0.5), world.article(0.6)
    world.sql(
        "INSERT INTO duplicate_link (article_id, canonical_id, stage, score, threshold, run_id) "
        "VALUES (%s, %s, 'url', 1, 1, 1)",
        copy,
        one[0],
    )
    with pytest.raises(InvalidInput, match=f"folded into {one[0]}"):
        edit("move", copy, world.story_of(one[0]))
    with pytest.raises(InvalidInput, match="not encoded yet"):
        edit("move", bare, world.story_of(one[0]))
    with pytest.raises(InvalidInput, match="name at least one"):
        edit("split", world.story_of(one[0]), [])


def test_an_empty_story_is_merged_with_none(world, edit):
    one, other = story(world), story(world, 0, plane=1)
    left, target = world.story_of(one[0]), world.story_of(other[0])
    for article in one:
        edit("move", article, target)
    with pytest.raises(InvalidInput, match="no articles any more"):
        edit("merge", target, left)


def test_a_story_older_than_the_space_is_edited_all_the_same(world, edit):
    """Its articles have no vectors in the space in use, so it has no centroid."""
    one = story(world, size=3)
    target = story(world, 0, 1, plane=1)
    old = world.story_of(one[0])
    world.sql("DELETE FROM article_vector_tiny WHERE article_id = ANY (%s)", one)
    world.sql("DELETE FROM story_vector_tiny WHERE story_id = %s", old)
    run_id = world.run_id()
    with world.session.transaction():
        Editor(world.session, world.calibration, run_id, "ann").move(
            one[0], world.story_of(target[0])
        )
    kept = find_story(world.session, old)
    assert (kept.size, kept.headline_id, kept.first_time) == (2, one[1], at(0))
