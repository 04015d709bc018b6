"""Taking links back, and judgements: what was folded comes apart and stays apart."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import at, turned

from clustering.dedup.cascade import _held_apart, fold
from clustering.dedup.grouping import Canonical
from clustering.dedup.links import LinkFilter, find_links, link_between, path, retract, root
from clustering.dedup.review import Judgement, judge, queued_pairs
from clustering.errors import InvalidInput, NotFoundError


def article(world, hours, *, entry=None, url=None, content=None, source="feed") -> int:
    """Store an article whose keys are small numbers."""
    keys = {"entry_hash": entry, "url_hash": url, "content_hash": content}
    given_keys = {name: UUID(int=10_000 + key) for name, key in keys.items() if key is not None}
    return world.article(hours, source=source, **given_keys)


def folded(world, *new: int) -> dict[int, int]:
    """Fold a batch; returns the canonical article of each duplicate, as the database has it then."""
    with world.session.transaction():
        fold(world.session, list(new), world.run_id())
    return canonicals(world)


def canonicals(world) -> dict[int, int]:
    found = dict(
        world.sql("SELECT article_id, canonical_id FROM duplicate_link WHERE retracted_at IS NULL")
    )
    assert not found.keys() & set(found.values()), "a duplicate leads to another duplicate"
    return found


def undo(world, *duplicates: int) -> list[int]:
    links = find_links(world.session, LinkFilter(article_ids=duplicates))
    with world.session.transaction():
        return retract(
            world.session,
            [link for link in links if link.article_id in duplicates],
            world.run_id(),
            lapsed=False,
        )


def decide(world, a: int, b: int, verdict: str = "different", by: str = "ann") -> list[int]:
    with world.session.transaction():
        return judge(world.session, Judgement(a, b, verdict, by), world.run_id)


def is_due(world, article_id: int) -> bool:
    return world.one("SELECT encode_due FROM article WHERE id = %s", article_id)


def test_an_undone_duplicate_is_its_own_article_and_waits_to_be_encoded(world):
    first, copy = article(world, 0, url=1), article(world, 1, url=1)
    assert folded(world, first, copy) == {copy: first}
    assert not is_due(world, copy)
    assert undo(world, copy) == [first]
    assert canonicals(world) == {}
    assert is_due(world, copy)
    (link,) = find_links(world.session, LinkFilter(taken_back=True))
    assert (link.article_id, link.lapsed) == (copy, False)
    assert link.retracted_at is not None
    run_id = world.one("SELECT retracted_run_id FROM duplicate_link")
    assert run_id == world.one("SELECT max(id) FROM run")


def test_an_undone_pair_is_never_folded_again_by_its_stage(world):
    first, copy = article(world, 0, url=1), article(world, 1, url=1)
    folded(world, first, copy)
    undo(world, copy)
    assert folded(world, first, copy) == {}
    assert folded(world, copy) == {}


def test_no_third_article_brings_an_undone_pair_together_by_its_stage(world):
    first, copy = article(world, 0, url=1), article(world, 1, url=1)
    folded(world, first, copy)
    undo(world, copy)
    third = article(world, 2, url=1)
    assert folded(world, third) == {third: first}
    earlier = article(world, -1, url=1)
    assert folded(world, earlier) == {first: earlier, third: earlier}


def test_another_stage_may_fold_an_undone_pair(world):
    first, copy = article(world, 0, url=1, content=1), article(world, 1, url=1, content=1)
    folded(world, first, copy)
    undo(world, copy)
    assert folded(world, copy) == {copy: first}
    stages = [row.stage for row in world.sql("SELECT stage FROM duplicate_link ORDER BY id")]
    assert stages == ["url", "content"]
    undo(world, copy)
    assert folded(world, copy) == {}


def test_who_undid_equal_texts_is_not_asked_again_when_they_are_nearly_equal(world):
    first, copy = article(world, 0, content=1), article(world, 1, content=1)
    folded(world, first, copy)
    undo(world, copy)
    standing = {number: Canonical(number, at(0)) for number in (first, copy)}
    held = {
        stage: _held_apart(world.session, stage, standing)
        for stage in ("url", "content", "simhash")
    }
    assert held == {"url": [], "content": [(copy, first)], "simhash": [(copy, first)]}


def test_a_lapsed_link_bars_nothing(world):
    first, copy = article(world, 0, url=1), article(world, 1, url=1)
    folded(world, first, copy)
    with world.session.transaction():
        links = find_links(world.session, LinkFilter())
        retract(world.session, links, world.run_id(), lapsed=True)
    assert canonicals(world) == {}
    assert folded(world, copy) == {copy: first}


def test_what_was_folded_into_a_duplicate_before_it_became_one_goes_with_it(world):
    old, one, two = article(world, 0, content=1), article(world, 1, url=1), article(world, 2, url=1)
    folded(world, old)
    folded(world, one, two)
    world.sql("UPDATE article SET content_hash = %s WHERE id = %s", UUID(int=10_001), one)
    assert folded(world, one) == {one: old, two: old}
    undo(world, one)
    assert canonicals(world) == {two: one}


def test_a_story_that_loses_a_duplicate_is_named(world):
    first, copy = article(world, 0, url=1), article(world, 1, url=1, source="other")
    folded(world, first, copy)
    assert undo(world, copy) == [first]


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({}, [2, 1, 0]),
        ({"stage": "url"}, [1, 0]),
        ({"stage": "simhash"}, []),
        ({"article_ids": [2]}, [0]),
        ({"article_ids": [1]}, [1, 0]),
        ({"article_ids": [3, 5]}, [2, 1]),
        ({"since": at(24 * 10_000)}, []),
        ({"since": at(0)}, [2, 1, 0]),
        ({"taken_back": True}, []),
        ({"link_ids": [1, 3]}, [2, 0]),
    ],
)
def test_links_are_found_by_any_condition(world, conditions, found):
    """Articles 1 to 5: 2 and 3 are folded into 1 by address, 5 into 4 by text."""
    ids = [article(world, hours, url=1) for hours in range(3)]
    ids += [article(world, hours, content=2) for hours in range(2)]
    assert ids == [1, 2, 3, 4, 5]
    folded(world, *ids)
    made = sorted(find_links(world.session, LinkFilter()), key=lambda link: link.id)
    assert [link.article_id for link in made] == [2, 3, 5]
    links = find_links(world.session, LinkFilter(**conditions))
    assert [made.index(link) for link in links] == found


def test_links_are_found_by_run_and_only_so_many(world):
    one, two = article(world, 0, url=1), article(world, 1, url=1)
    folded(world, one, two)
    three = article(world, 2, url=1)
    folded(world, three)
    latest = world.one("SELECT max(run_id) FROM duplicate_link")
    (link,) = find_links(world.session, LinkFilter(run_id=latest))
    assert (link.article_id, link.canonical_id, link.folded_into) == (three, one, one)
    assert link.source == link.canonical_source == "feed"
    assert len(find_links(world.session, LinkFilter(), 1)) == 1


def test_a_filter_knows_whether_it_is_open():
    assert LinkFilter().is_open()
    assert LinkFilter(taken_back=True).is_open()
    assert not LinkFilter(stage="url").is_open()


def test_a_path_leads_to_the_canonical_article():
    into = {5: 3, 3: 1, 4: 1}
    assert path(5, into) == [5, 3, 1]
    assert root(4, into) == root(5, into) == 1
    assert root(1, into) == 1


def test_who_leaves_is_the_one_that_leads_through_the_other_else_the_later():
    into = {5: 3, 3: 1, 4: 1}
    assert link_between(3, 5, into) == 5
    assert link_between(5, 3, into) == 5
    assert link_between(1, 4, into) == 4
    assert link_between(4, 5, into) == 5
    assert link_between(5, 4, into) == 4


def test_different_parts_what_was_folded_and_no_stage_folds_it_again(world):
    first, copy = article(world, 0, url=1, content=1), article(world, 1, url=1, content=1)
    folded(world, first, copy)
    assert decide(world, copy, first) == [first]
    assert canonicals(world) == {}
    assert is_due(world, copy)
    assert folded(world, copy, first) == {}


def test_different_parts_two_that_a_third_joined(world):
    first, one, two = (article(world, hours, url=1) for hours in range(3))
    folded(world, first, one, two)
    assert decide(world, one, two) == [first]
    assert canonicals(world) == {one: first}
    assert folded(world, two) == {one: first}


def test_no_chain_joins_what_is_judged_different(world):
    """Each shares a key with the third, by another stage."""
    one, other = article(world, 0, url=1), article(world, 1, content=2)
    assert decide(world, one, other) == []
    third = article(world, 2, url=1, content=2)
    assert folded(world, one, other, third) == {third: one}


def test_members_of_two_groups_hold_the_groups_apart(world):
    a, a_copy = article(world, 0, url=1), article(world, 1, url=1, content=3)
    b, b_copy = article(world, 2, url=2, content=3), article(world, 3, url=2)
    decide(world, a_copy, b_copy)
    assert folded(world, a, a_copy, b, b_copy) == {a_copy: a, b_copy: b}


def test_a_verdict_can_be_replaced_and_same_folds_nothing(world):
    one, other = article(world, 0, url=1), article(world, 1, url=1)
    decide(world, other, one, "different", "ann")
    decide(world, one, other, "same", "bob")
    rows = world.sql("SELECT a_id, b_id, verdict, judged_by FROM judgement")
    assert [tuple(row) for row in rows] == [(one, other, "same", "bob")]
    assert canonicals(world) == {}
    assert folded(world, other) == {other: one}


def test_the_same_verdict_again_writes_nothing(world):
    one, other = article(world, 0), article(world, 1)
    decide(world, one, other, "same")
    before = world.sql("SELECT xmin::text, judged_at FROM judgement")
    decide(world, other, one, "same")
    assert world.sql("SELECT xmin::text, judged_at FROM judgement") == before


@pytest.mark.parametrize(
    ("judgement", "error"),
    [
        ((1, 1, "same", "ann"), InvalidInput),
        ((1, 2, "alike", "ann"), InvalidInput),
        ((1, 2, "same", " "), InvalidInput),
        ((1, 77, "same", "ann"), NotFoundError),
        ((78, 2, "different", "ann"), NotFoundError),
    ],
)
def test_a_verdict_that_makes_no_sense_is_refused(world, judgement, error):
    assert [article(world, 0), article(world, 1)] == [1, 2]
    with pytest.raises(error):
        decide(world, *judgement)
    assert world.one("SELECT count(*) FROM judgement") == 0


def test_the_queue_has_what_waits_and_what_was_decided(world):
    one, other = world.article(0, source="a", title="One"), world.article(1, source="b")
    third = world.article(2)
    for pair in ((one, other), (other, third)):
        world.sql(
            "INSERT INTO review_flag (a_id, b_id, stage, score, threshold, run_id) "
            "VALUES (%s, %s, 'title', .5, .4, %s)",
            *pair,
            world.run_id(),
        )
    decide(world, third, other, "same", "ann")
    (waits,) = queued_pairs(world.session)
    assert (waits.a.id, waits.b.id, waits.a.title, waits.a.source) == (one, other, "One", "a")
    assert (waits.stage, waits.score, waits.verdict) == ("title", 0.5, None)
    (decided,) = queued_pairs(world.session, decided=True)
    assert (decided.a.id, decided.verdict, decided.judged_by) == (other, "same", "ann")
    assert queued_pairs(world.session, most=1) == [waits]


KEY = st.one_of(st.none(), st.integers(0, 2))
ARTICLE = st.fixed_dictionaries({"entry": KEY, "url": KEY, "content": KEY})
PAIR = st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] != pair[1])
STEP = st.one_of(
    st.tuples(st.just("judge"), PAIR),
    st.tuples(st.just("undo"), st.integers(0, 8)),
    st.tuples(st.just("encode"), st.integers(0, 8)),
    st.tuples(st.just("fold"), st.lists(st.integers(0, 8), min_size=1, unique=True)),
)
EACH_EXAMPLE_IS_EMPTIED = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(st.lists(ARTICLE, min_size=9, max_size=9), st.lists(STEP, max_size=12))
@EACH_EXAMPLE_IS_EMPTIED
def test_whatever_happens_judgements_and_undone_links_hold(world, keys, steps):
    world.sql("TRUNCATE duplicate_link, judgement, story_article, article RESTART IDENTITY CASCADE")
    world.sql("TRUNCATE article_vector_tiny")
    ids = [article(world, hours, **own) for hours, own in enumerate(keys)]
    apart: set[frozenset[int]] = set()
    undone: set[tuple[int, int, str]] = set()
    for kind, what in [*steps, ("fold", range(9))]:
        links = {link.article_id: link for link in find_links(world.session, LinkFilter())}
        if kind == "judge":
            decide(world, *(ids[number] for number in what))
            apart.add(frozenset(ids[number] for number in what))
        elif kind == "undo" and ids[what] in links:
            link = links[ids[what]]
            undo(world, link.article_id)
            undone.add((link.article_id, link.canonical_id, link.stage))
        elif kind == "encode" and ids[what] not in links:
            if not world.sql("SELECT 1 FROM story_article WHERE article_id = %s", ids[what]):
                world.embed([(ids[what], at(what), turned(0))])
        elif kind == "fold":
            standing = [ids[number] for number in what if ids[number] not in links]
            check_fold(world, standing, undone)
        chiefs = canonicals(world)
        assert not [p for p in apart if len({chiefs.get(a, a) for a in p}) == 1]
    check_shape(world)


def check_fold(world, standing: list[int], undone: set[tuple[int, int, str]]) -> None:
    """Fold, and see that no group now joins an undone pair that only its stage would join."""
    before = canonicals(world)
    after = folded(world, *standing)
    new = {link.article_id: link for link in find_links(world.session, LinkFilter())}
    for duplicate, chief, stage in undone:
        together = after.get(duplicate, duplicate) == after.get(chief, chief)
        if together and before.get(duplicate, duplicate) != before.get(chief, chief):
            made = {link.stage for link in new.values() if link.canonical_id == after[duplicate]}
            assert made != {stage}


def check_shape(world) -> None:
    """Each live link leads where its chain leads; encoded articles are no duplicates, the others are not encoded."""
    links = find_links(world.session, LinkFilter())
    into = {link.article_id: link.folded_into for link in links}
    assert {link.article_id: root(link.article_id, into) for link in links} == {
        link.article_id: link.canonical_id for link in links
    }
    encoded = {row.article_id for row in world.sql("SELECT article_id FROM story_article")}
    assert not encoded & into.keys()
    due = {row.id for row in world.sql("SELECT id FROM article WHERE encode_due")}
    assert due == set(range(1, 10)) - encoded - into.keys()
