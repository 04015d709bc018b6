from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clustering.dedup.grouping import Canonical, decide

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def selves(*settled: int, **hours_by_id: float) -> dict[int, Canonical]:
    """Articles that stand for themselves: `a3=1.5` is article 3, an hour and a half in."""
    return {
        (number := int(name[1:])): Canonical(
            number, START + timedelta(hours=hours), settled=number in settled
        )
        for name, hours in hours_by_id.items()
    }


def test_no_twins_no_duplicates():
    assert decide([], {}) == {}


def test_the_earliest_stands():
    assert decide([(1, 2), (2, 3)], selves(a1=2, a2=1, a3=3)) == {1: 2, 3: 2}


def test_of_one_time_the_lowest_id_stands():
    assert decide([(9, 8), (8, 9)], selves(a8=0, a9=0)) == {9: 8}


def test_a_settled_article_stands_even_if_it_is_later():
    assert decide([(2, 1)], selves(1, a1=5, a2=0)) == {2: 1}


def test_settled_articles_are_never_folded():
    assert decide([(3, 1), (3, 2)], selves(1, 2, a1=4, a2=2, a3=0)) == {3: 2}
    assert decide([(1, 2)], selves(1, 2, a1=4, a2=2)) == {}


def test_a_stored_article_that_nothing_rests_on_is_folded_into_an_earlier_new_one():
    assert decide([(2, 1)], selves(a1=5, a2=0)) == {1: 2}


def test_a_twin_that_is_a_duplicate_leads_to_its_canonical_article():
    canonicals = selves(a1=0, a3=9) | {2: Canonical(1, START)}
    assert decide([(3, 2)], canonicals) == {3: 1}


def test_groups_do_not_mix():
    canonicals = selves(a1=0, a2=1, a3=2, a4=3)
    assert decide([(2, 1), (4, 3)], canonicals) == {2: 1, 4: 3}


def test_an_article_whose_twin_was_folded_into_it_stays():
    canonicals = selves(a1=0) | {2: Canonical(1, START)}
    assert decide([(1, 2)], canonicals) == {}


def test_a_copy_of_a_copy_is_one_only_in_a_chain():
    canonicals = selves(a1=0, a2=1, a3=2)
    assert decide([(2, 1), (3, 2)], canonicals) == {2: 1, 3: 1}
    assert decide([(2, 1), (3, 2)], canonicals, chained=False) == {2: 1}


def test_without_chains_an_article_joins_the_earliest_that_it_was_compared_with():
    canonicals = selves(a1=0, a2=1, a3=2, a4=3)
    twins = [(3, 2), (4, 2), (4, 1)]
    assert decide(twins, canonicals, chained=False) == {3: 2, 4: 1}


def test_what_is_held_apart_stays_apart():
    assert decide([(1, 2)], selves(a1=0, a2=1), apart=[(2, 1)]) == {}


def test_no_third_article_joins_what_is_held_apart():
    canonicals = selves(a1=0, a2=1, a3=2)
    assert decide([(1, 3), (2, 3)], canonicals, apart=[(1, 2)]) == {3: 1}


def test_an_article_held_apart_from_the_earliest_joins_the_next():
    canonicals = selves(a1=0, a2=1, a3=2)
    twins = [(1, 2), (2, 3), (1, 3)]
    assert decide(twins, canonicals, apart=[(1, 2), (1, 3)]) == {3: 2}


def test_who_joins_brings_what_it_is_held_apart_from():
    canonicals = selves(a1=0, a2=1, a3=2)
    twins = [(1, 2), (1, 3)]
    assert decide(twins, canonicals, apart=[(2, 3)]) == {2: 1}
