from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from clustering.dedup.cascade import Canonical, decide

START = datetime(2026, 3, 1, tzinfo=UTC)


@st.composite
def batches(draw):
    """Stored articles 1 to 6, of which some are duplicates, and new ones 7 to 12, with twins."""
    times = {a: START + timedelta(hours=draw(st.integers(0, 5))) for a in range(1, 13)}
    chief_of = {a: a for a in times}
    for stored in range(2, 7):
        older = [a for a in range(1, stored) if chief_of[a] == a]
        chief_of[stored] = draw(st.sampled_from([stored, *older]))
    new = draw(st.sets(st.integers(7, 12), min_size=1))
    known = sorted({*range(1, 7), *new})
    pair = st.tuples(st.sampled_from(sorted(new)), st.sampled_from(known))
    twins = [(a, b) for a, b in draw(st.lists(pair, max_size=10)) if a != b]
    return new, twins, {a: Canonical(chief_of[a], times[chief_of[a]]) for a in known}


def slow(new, twins, canonicals) -> dict[int, int]:
    """Grow a list of groups pair by pair, then choose the chief of each by trying all."""
    groups: list[set[int]] = []
    for a, b in twins:
        pair = {canonicals[a].canonical_id, canonicals[b].canonical_id}
        touching = [group for group in groups if group & pair]
        groups = [group for group in groups if group not in touching] + [pair.union(*touching)]
    decided = {}
    for group in groups:
        stored = [a for a in group if a not in new]
        candidates = stored or list(group)
        earliest = min(canonicals[a].event_time for a in candidates)
        chief = min(a for a in candidates if canonicals[a].event_time == earliest)
        decided |= {a: chief for a in group if a in new and a != chief}
    return decided


@given(batches())
def test_decisions_agree_with_the_slow_way(batch):
    assert decide(*batch) == slow(*batch)


@given(batches(), st.randoms(use_true_random=False))
def test_the_order_of_articles_and_twins_does_not_matter(batch, random):
    new, twins, canonicals = batch
    shuffled_new, shuffled_twins = sorted(new), list(twins)
    random.shuffle(shuffled_new)
    random.shuffle(shuffled_twins)
    assert decide(shuffled_new, shuffled_twins, canonicals) == decide(new, twins, canonicals)


@given(batches())
def test_only_new_articles_are_folded_and_never_into_a_duplicate(batch):
    new, twins, canonicals = batch
    decided = decide(new, twins, canonicals)
    assert decided.keys() <= new
    assert not decided.keys() & set(decided.values())
    assert all(canonicals[chief].canonical_id == chief for chief in decided.values())
