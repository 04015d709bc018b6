"""Who stands for whom, against a slow way that looks at every article anew, and what must hold of any outcome."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from clustering.dedup.grouping import Canonical, decide

START = datetime(2026, 3, 1, tzinfo=UTC)
ARTICLES = range(1, 11)


@st.composite
def worlds(draw):
    """Ten articles of which some are duplicates and some settled; twins, and pairs that are held apart."""
    times = {a: START + timedelta(hours=draw(st.integers(0, 4))) for a in ARTICLES}
    settled = draw(st.sets(st.sampled_from(ARTICLES), max_size=3))
    chief_of = {a: a for a in ARTICLES}
    for article in range(2, 6):
        older = [a for a in range(1, article) if chief_of[a] == a]
        if article not in settled:
            chief_of[article] = draw(st.sampled_from([article, *older]))
    canonicals = {
        a: Canonical(chief, times[chief], settled=chief in settled) for a, chief in chief_of.items()
    }
    pair = st.tuples(st.sampled_from(ARTICLES), st.sampled_from(ARTICLES))
    twins = [(a, b) for a, b in draw(st.lists(pair, max_size=14)) if a != b]
    standing = st.sampled_from(sorted({c.canonical_id for c in canonicals.values()}))
    barred = draw(st.lists(st.tuples(standing, standing), max_size=4))
    return twins, canonicals, [(a, b) for a, b in barred if a != b]


def partners(edges, article, *, chained):
    """Everything that an article is a copy of: by one edge, or by a walk."""
    found, before = {article}, None
    while found != before:
        before = set(found)
        found |= {b for a, b in edges if a in before} | {a for a, b in edges if b in before}
        if not chained:
            break
    return found - {article}


def slow(twins, canonicals, apart, *, chained):
    """Look at the articles one by one in their order, and try every chief there is."""
    edges = [(canonicals[a].canonical_id, canonicals[b].canonical_id) for a, b in twins]
    edges = [(a, b) for a, b in edges if a != b]
    by_id = {c.canonical_id: c for c in canonicals.values()}
    order = sorted(by_id.values(), key=lambda c: (not c.settled, c.event_time, c.canonical_id))
    chiefs: list[list[int]] = []
    for article in order:
        own = article.canonical_id
        near = partners(edges, own, chained=chained)
        for group in chiefs:
            clash = any((own, m) in apart or (m, own) in apart for m in group)
            if group[0] in near and not clash and not article.settled:
                group.append(own)
                break
        else:
            chiefs.append([own])
    return {member: group[0] for group in chiefs for member in group[1:]}


@given(worlds(), st.booleans())
def test_decisions_agree_with_the_slow_way(world, chained):
    assert decide(*world, chained=chained) == slow(*world, chained=chained)


@given(worlds(), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_twins_does_not_matter(world, chained, random):
    twins, canonicals, apart = world
    shuffled = [random.choice([(a, b), (b, a)]) for a, b in twins]
    random.shuffle(shuffled)
    swapped = [(b, a) for a, b in apart]
    assert decide(shuffled, canonicals, swapped, chained=chained) == decide(*world, chained=chained)


@given(worlds(), st.booleans())
def test_settled_articles_stand_and_nothing_leads_to_a_duplicate(world, chained):
    decided = decide(*world, chained=chained)
    assert not decided.keys() & {c.canonical_id for c in world[1].values() if c.settled}
    assert not decided.keys() & set(decided.values())


@given(worlds(), st.booleans())
def test_nothing_brings_together_what_is_held_apart(world, chained):
    decided = decide(*world, chained=chained)
    for a, b in world[2]:
        assert decided.get(a, a) != decided.get(b, b)


@given(worlds())
def test_a_chief_is_the_earliest_of_its_group(world):
    twins, canonicals, apart = world
    decided = decide(twins, canonicals, apart)
    by_id = {c.canonical_id: c for c in canonicals.values()}
    for duplicate, chief in decided.items():
        rank = (not by_id[chief].settled, by_id[chief].event_time, chief)
        assert rank < (True, by_id[duplicate].event_time, duplicate)


@given(worlds())
def test_two_that_stand_had_a_reason(world):
    """Standing articles of one chain are settled, or something holds their groups apart."""
    twins, canonicals, apart = world
    decided = decide(twins, canonicals, apart)
    groups: dict[int, set[int]] = {}
    for article in {c.canonical_id for c in canonicals.values()}:
        groups.setdefault(decided.get(article, article), set()).add(article)
    settled = {c.canonical_id for c in canonicals.values() if c.settled}
    edges = [(canonicals[a].canonical_id, canonicals[b].canonical_id) for a, b in twins]
    for one, other in combinations(sorted(groups), 2):
        held = any({a, b} <= groups[one] | groups[other] for a, b in apart)
        if other in partners(edges, one, chained=True) and not held:
            assert {one, other} <= settled
