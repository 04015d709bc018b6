from __future__ import annotations

from datetime import UTC, datetime, timedelta

from clustering.dedup.cascade import Canonical, decide

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def selves(**hours_by_id: float) -> dict[int, Canonical]:
    """Articles that stand for themselves: `a3=1.5` is article 3, an hour and a half in."""
    return {
        int(name[1:]): Canonical(int(name[1:]), START + timedelta(hours=hours))
        for name, hours in hours_by_id.items()
    }


def test_no_twins_no_duplicates():
    assert decide([1, 2], [], {}) == {}


def test_a_new_article_is_folded_into_a_stored_one_even_if_that_is_later():
    assert decide([2], [(2, 1)], selves(a1=5, a2=0)) == {2: 1}


def test_among_new_articles_the_earliest_stands():
    assert decide([1, 2, 3], [(1, 2), (2, 3)], selves(a1=2, a2=1, a3=3)) == {1: 2, 3: 2}


def test_among_new_articles_of_one_time_the_lowest_id_stands():
    assert decide([9, 8], [(9, 8), (8, 9)], selves(a8=0, a9=0)) == {9: 8}


def test_a_twin_that_is_a_duplicate_leads_to_its_canonical_article():
    canonicals = selves(a1=0, a3=9) | {2: Canonical(1, START)}
    assert decide([3], [(3, 2)], canonicals) == {3: 1}


def test_stored_articles_are_never_folded():
    assert decide([3], [(3, 1), (3, 2)], selves(a1=4, a2=2, a3=0)) == {3: 2}


def test_groups_do_not_mix():
    canonicals = selves(a1=0, a2=1, a3=2, a4=3)
    assert decide([2, 4], [(2, 1), (4, 3)], canonicals) == {2: 1, 4: 3}


def test_an_article_whose_twin_was_folded_into_it_stays():
    canonicals = selves(a1=0) | {2: Canonical(1, START)}
    assert decide([1], [(1, 2)], canonicals) == {}
