from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustering.dedup.canonical import canonical_text, plain_text
from clustering.dedup.flags import LabelledTitle, flagged_pairs, score_flags
from clustering.dedup.grouping import Canonical, decide
from clustering.dedup.near import Body, exchanged, overlap
from clustering.dedup.shingles import script_of, shingles
from clustering.dedup.sketches import near_keys, simhash, sketch_overlap, title_sketch

START = datetime(2026, 3, 1, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
AWKWARD = st.text("ab<>&;/#pltgmsn -|().©:\n\u00adß", max_size=60)
WORD = st.sampled_from(
    ["river", "dam", "Rovers", "City", "2-1", "rose", "beat", "मंत्री", "река", "two", "three"]
)
WORDS = st.lists(WORD, max_size=30).map(" ".join)
HASHES = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40, unique=True)


@given(st.one_of(TEXT, AWKWARD))
def test_canonical_text_is_its_own_canonical_text(text):
    once = canonical_text(text)
    assert canonical_text(once) == once


@given(st.one_of(TEXT, AWKWARD))
def test_plain_text_is_its_own_plain_text(text):
    assert plain_text(plain_text(text)) == plain_text(text)


@given(WORDS)
def test_word_shingles_are_equal_exactly_where_their_words_are(text):
    words = canonical_text(text).replace("-", " ").split()
    windows = [tuple(words[i : i + 3]) for i in range(max(1, len(words) - 2))] if words else []
    found = shingles(canonical_text(text)).tolist()
    assert len(found) == len(windows)
    assert len(set(found)) == len(set(windows))
    assert Counter(Counter(found).values()) == Counter(Counter(windows).values())


@given(st.text("川の水位は夜のうちに上昇", max_size=40))
def test_character_shingles_are_equal_exactly_where_their_characters_are(text):
    size = script_of(text).value
    windows = [text[i : i + size] for i in range(max(1, len(text) - size + 1))] if text else []
    found = shingles(text).tolist()
    assert len(found) == len(windows)
    assert len(set(found)) == len(set(windows))


@given(TEXT)
def test_any_text_can_be_cut(text):
    canonical = canonical_text(text)
    assert shingles(canonical).dtype == np.uint64
    near = near_keys(canonical)
    assert (near.simhash is None) == (not any(near.bands)) == (len(shingles(canonical)) == 0)


@given(HASHES, st.data())
def test_simhash_agrees_with_counting_bit_by_bit(hashes, data):
    counts = data.draw(st.lists(st.integers(1, 9), min_size=len(hashes), max_size=len(hashes)))
    expected = 0
    for bit in range(64):
        votes = sum(n if h >> bit & 1 else -n for h, n in zip(hashes, counts, strict=True))
        expected |= (votes > 0) << bit
    assert simhash(np.array(hashes, np.uint64), np.array(counts)) == expected


@given(WORDS, WORDS)
def test_overlap_is_that_of_bags(one, other):
    a, b = (Counter(shingles(canonical_text(text)).tolist()) for text in (one, other))
    either = (a | b).total()
    expected = (a & b).total() / either if either else 0.0
    assert overlap(Body(one), Body(other)) == pytest.approx(expected)


@given(WORDS, WORDS)
def test_comparing_is_the_same_both_ways(one, other):
    first, second = Body(one), Body(other)
    assert overlap(first, second) == overlap(second, first)
    assert exchanged(first, second) == exchanged(second, first)
    assert exchanged(first, Body(one)) == 0


@given(WORDS, WORDS)
def test_equal_bands_are_as_common_as_equal_shingles(one, other):
    """Whoever shares all shingles shares all bands, whoever shares none shares none."""
    first, second = (set(shingles(canonical_text(text)).tolist()) for text in (one, other))
    bands = [
        {band for band in near_keys(canonical_text(text)).bands if band is not None}
        for text in (one, other)
    ]
    if first == second:
        assert bands[0] == bands[1]
    if not first & second:
        assert not bands[0] & bands[1]


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_texts_share_a_band_about_as_often_as_they_share_shingles(seed):
    random = np.random.default_rng(seed)
    words = [f"w{n}" for n in random.integers(0, 10**9, 400)]
    one, other = near_keys(" ".join(words)), near_keys(" ".join(words[:-36]))
    shared = sum(a == b for a, b in zip(one.bands, other.bands, strict=True))
    assert shared >= 1  # the chance of none is .09 ** 4


@given(TEXT, TEXT)
def test_overlap_of_sketches_is_symmetric_and_whole_for_equal_titles(one, other):
    first, second = title_sketch(one), title_sketch(other)
    assert sketch_overlap(first, second) == sketch_overlap(second, first)
    assert 0 <= sketch_overlap(first, second) <= 1
    assert sketch_overlap(first, first) == (1.0 if first else 0.0)


TITLES = st.lists(
    st.builds(
        LabelledTitle,
        st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join),
        st.integers(0, 100).map(lambda hours: START + timedelta(hours=hours)),
        st.sampled_from(["s1", "s2", None]),
    ),
    max_size=12,
)


@given(TITLES, st.sampled_from([0.2, 0.4, 0.5, 2 / 3, 1.0]))
def test_flags_agree_with_comparing_all_pairs(titles, least):
    window = timedelta(hours=48)
    expected = {
        (a, b)
        for (a, one), (b, other) in combinations(enumerate(titles), 2)
        if abs(one.time - other.time) <= window
        and title_sketch(one.title)
        and sketch_overlap(title_sketch(one.title), title_sketch(other.title)) >= least
    }
    assert set(flagged_pairs(titles, window, least)) == expected


@given(TITLES)
def test_scores_of_flags_count_labelled_pairs(titles):
    scores = score_flags(titles)
    assert 0 <= scores.right <= scores.flags
    assert 0 <= scores.equal_flagged <= scores.equal
    named = [title for title in titles if title_sketch(title.title)]
    assert score_flags(named).recall == 1.0
    flagged = [
        (titles[a].story, titles[b].story)
        for a, b in flagged_pairs(titles, timedelta(hours=48), 0.4)
        if titles[a].story and titles[b].story
    ]
    assert scores.flags == len(flagged)
    assert scores.right == sum(one == other for one, other in flagged)


@st.composite
def near_batches(draw):
    """Settled articles 1 to 4, new ones 5 to 10, and compared pairs with at least one new."""
    canonicals = {
        a: Canonical(a, START + timedelta(hours=draw(st.integers(0, 4))), settled=a < 5)
        for a in range(1, 11)
    }
    pair = st.tuples(st.integers(5, 10), st.integers(1, 10)).filter(lambda p: p[0] != p[1])
    return draw(st.lists(pair, max_size=14, unique_by=frozenset)), canonicals


@given(near_batches())
def test_near_copies_lead_to_what_they_were_compared_with_and_stands(batch):
    pairs, canonicals = batch
    decided = decide(pairs, canonicals, chained=False)
    compared = set(map(frozenset, pairs))
    assert all(frozenset(link) in compared for link in decided.items())
    assert not decided.keys() & set(decided.values())
    standing = [a for a in canonicals if a not in decided]
    for article in standing:
        earlier = [a for a in standing if rank(a, canonicals) < rank(article, canonicals)]
        left = [a for a in earlier if frozenset((article, a)) in compared]
        assert not left or canonicals[article].settled, "one was left unfolded"


def rank(article, canonicals):
    return not canonicals[article].settled, canonicals[article].event_time, article
