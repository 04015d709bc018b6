"""Each pure decision beside a slow, obvious version of it, on random input."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.stories import discover
from clustering.stories.calibration import Calibration
from clustering.stories.discover import Edge, Loose, Neighbour, edges, groups
from clustering.stories.match import Candidate, Match, best_matches
from clustering.stories.merge import Merge, StoryPair, merges
from clustering.stories.scoring import StoryShape, match_parts, merge_score, pair_score

START = datetime(2026, 3, 1, tzinfo=UTC)
CALIBRATION = Calibration(
    match=0.5,
    attach=0.5,
    link=0.5,
    merge=0.4,
    story_gap_hours=18,
    story_age_hours=36,
    centroid_members=10,
    neighbours=20,
    time_penalty=0.03,
    language_penalty=0.05,
    chain_slack=0.05,
    match_cohesion_penalty=0.2,
    merge_cohesion_penalty=0.3,
    merge_size_penalty=0.02,
    cohesion_prior=0.5,
    event_link=0.5,
    event_gap_hours=168,
    event_time_penalty=0,
)
HOURS = st.integers(-30, 80)
COHESIONS = st.sampled_from([0.3, 0.5, 0.9])
TONGUES = {article: ("ja", "bn", "en")[article % 3] for article in range(30)}
SPOKEN = ({"ja": 1.0}, {"ja": 0.5, "bn": 0.25, "ar": 0.25}, {"en": 0.75, "bn": 0.25})
SEEDS = st.integers(0, 2**32 - 1)


def at(hour: float) -> datetime:
    return START + timedelta(hours=hour)


def hours_between(a: datetime, b: datetime) -> float:
    return abs((a - b).total_seconds()) / 3600


@st.composite
def candidate_lists(draw):
    """Up to 3 articles near up to 5 stories, with few distinct cosines so that ties occur."""
    times = {article: draw(HOURS) for article in (1, 2, 3)}
    extents = {story: sorted((draw(HOURS), draw(HOURS))) for story in range(10, 15)}
    seen = draw(st.sets(st.tuples(st.sampled_from([1, 2, 3]), st.sampled_from(range(10, 15)))))
    shapes = {
        story: StoryShape(
            story, *map(at, extent), 4, draw(COHESIONS), draw(st.sampled_from(SPOKEN))
        )
        for story, extent in extents.items()
    }
    cosine = st.sampled_from([0.2, 0.5, 0.8])
    return [
        Candidate(a, at(times[a]), TONGUES[a], draw(cosine), shapes[s]) for a, s in sorted(seen)
    ]


@given(candidate_lists(), st.randoms(use_true_random=False))
def test_matching_agrees_with_trying_every_story(candidates, random):
    expected = {}
    for article in {candidate.article_id for candidate in candidates}:
        options = []
        for c in candidates:
            late = (c.event_time - c.story.latest_time).total_seconds() / 3600
            early = (c.story.first_time - c.event_time).total_seconds() / 3600
            if c.article_id != article or late > 18 or early > 18:
                continue
            if (c.event_time - c.story.first_time).total_seconds() / 3600 <= 36:
                apart = timedelta(hours=max(late, early, 0))
                score = match_parts(c.similarity, apart, c.language, c.story, CALIBRATION).score
                options.append((-score, c.story.story_id))
        if options:
            score, story = min(options)
            expected[article] = Match(story, -score)
    random.shuffle(candidates)
    assert best_matches(candidates, CALIBRATION) == expected


@st.composite
def neighbour_lists(draw):
    pairs = draw(st.sets(st.tuples(st.integers(1, 7), st.integers(1, 7)), max_size=20))
    cosines = {}
    for a, b in sorted(pairs):
        cosines.setdefault((min(a, b), max(a, b)), draw(st.floats(-1, 1)))
    return [Neighbour(a, b, cosines[min(a, b), max(a, b)]) for a, b in sorted(pairs) if a != b]


@given(
    neighbour_lists(),
    st.lists(HOURS, min_size=7, max_size=7),
    st.frozensets(st.integers(1, 7)),
)
def test_edges_agree_with_looking_at_every_pair(neighbours, hours, free):
    times = {article: at(hour) for article, hour in enumerate(hours, start=1)}
    loose = {article: Loose(times[article], TONGUES[article]) for article in free}
    expected = []
    for a, b in combinations(sorted(free), 2):
        seen = [n for n in neighbours if {n.article_id, n.other_id} == {a, b}]
        if seen and hours_between(times[a], times[b]) <= 18:
            alike = TONGUES[a] == TONGUES[b]
            score = pair_score(seen[0].similarity, times[a] - times[b], alike, CALIBRATION)
            if score >= CALIBRATION.link:
                expected.append(Edge(a, b, score))
    assert edges(neighbours, loose, CALIBRATION) == expected


def random_articles(seed: int, count: int, noise: float):
    """Unit vectors around a few centres, times within a day, the score of each pair."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(4, 8))
    vectors = centres[random.integers(0, 4, count)] + noise * random.normal(size=(count, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    times = {article: at(hour) for article, hour in enumerate(random.uniform(0, 24, count))}
    loose = {article: Loose(time, TONGUES[article]) for article, time in times.items()}
    cosines = vectors @ vectors.T
    scores = {
        (a, b): pair_score(
            cosines[a, b], times[a] - times[b], TONGUES[a] == TONGUES[b], CALIBRATION
        )
        for a, b in combinations(range(count), 2)
    }
    links = [
        Edge(a, b, score)
        for (a, b), score in scores.items()
        if score >= CALIBRATION.link and hours_between(times[a], times[b]) <= 18
    ]
    return loose, cosines, scores, links


def slow_components(links) -> list[set[int]]:
    found: list[set[int]] = []
    for edge in links:
        touching = [group for group in found if group & {edge.a, edge.b}]
        found = [group for group in found if group not in touching]
        found.append({edge.a, edge.b}.union(*touching))
    return found


def slow_average_linkage(group: set[int], scores, least: float) -> list[set[int]]:
    """Join the two parts of the best mean score, for as long as that reaches `least`."""

    def mean(one, other):
        return np.mean([scores[min(a, b), max(a, b)] for a in one for b in other])

    parts = [{article} for article in group]
    while len(parts) > 1:
        one, other = max(combinations(parts, 2), key=lambda pair: mean(*pair))
        if mean(one, other) < least:
            break
        parts = [part for part in parts if part not in (one, other)] + [one | other]
    return parts


@given(SEEDS, st.integers(2, 16), st.floats(0.1, 0.9))
def test_groups_agree_with_slow_average_linkage_inside_slow_components(seed, count, noise):
    loose, cosines, scores, links = random_articles(seed, count, noise)
    expected = []
    for component in slow_components(links):
        least = CALIBRATION.link - CALIBRATION.chain_slack
        parts = (
            slow_average_linkage(component, scores, least) if len(component) > 2 else [component]
        )
        expected += [sorted(part) for part in parts if len(part) > 1]
    found = groups(links, loose, lambda ids: cosines[np.ix_(ids, ids)], CALIBRATION)
    assert found == sorted(expected)


@given(SEEDS, st.integers(2, 16), st.randoms(use_true_random=False))
def test_groups_do_not_depend_on_the_order_of_links(seed, count, random):
    loose, cosines, _, links = random_articles(seed, count, 0.5)

    def similarities(ids):
        return cosines[np.ix_(ids, ids)]

    expected = groups(links, loose, similarities, CALIBRATION)
    random.shuffle(links)
    assert groups(links, loose, similarities, CALIBRATION) == expected


def slow_small_components(links, threshold: float, most: int):
    """Components of at most `most` nodes, a larger one looked at again a step higher; and those
    larger ones that come apart nowhere.
    """
    small, stubborn = set(), set()
    for component in slow_components(links):
        if len(component) <= most:
            small.add(frozenset(component))
            continue
        higher = [e for e in links if {e.a, e.b} <= component and e.score >= threshold + 0.02]
        inside = slow_small_components(higher, threshold + 0.02, most)
        small |= inside[0]
        stubborn |= inside[1] if any(inside) else {frozenset(component)}
    return small, stubborn


@given(SEEDS, st.integers(10, 24))
def test_components_too_large_are_cut_a_step_at_a_time(seed, count):
    articles, _, _, links = random_articles(seed, count, 0.3)
    loose = replace(CALIBRATION, chain_slack=1.0, time_penalty=0, language_penalty=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discover, "MAX_COMPONENT_ARTICLES", 6)
        found = groups(links, articles, lambda ids: np.ones((len(ids), len(ids))), loose)
    small, stubborn = slow_small_components(links, CALIBRATION.link, 6)
    sets = {frozenset(group) for group in found}
    assert small <= sets
    for component in stubborn:
        parts = [part for part in sets if part <= component]
        assert frozenset().union(*parts) == component
        assert max(map(len, parts)) <= 6
    assert sum(map(len, found)) == sum(map(len, small | stubborn))


@st.composite
def story_pairs(draw):
    shapes = {}
    for story in range(1, 7):
        first, latest = sorted((draw(HOURS), draw(HOURS)))
        size, cohesion = draw(st.integers(1, 9)), draw(st.floats(0, 1))
        spoken = draw(st.sampled_from(SPOKEN))
        shapes[story] = StoryShape(story, at(first), at(latest), size, cohesion, spoken)
    pair = st.tuples(st.integers(1, 6), st.integers(1, 6)).filter(lambda ids: ids[0] != ids[1])
    cosine = st.sampled_from([0.3, 0.5, 0.7, 0.9])
    cosines = {frozenset(ids): draw(cosine) for ids in draw(st.lists(pair, max_size=12))}
    return [
        StoryPair(*(shapes[story] for story in draw(st.permutations(sorted(ids)))), cosine)
        for ids, cosine in cosines.items()
    ]


@given(story_pairs(), st.randoms(use_true_random=False))
def test_merges_are_the_mutual_nearest_pairs(pairs, random):
    scores = {}
    for p in pairs:
        latest = max(p.a.latest_time, p.b.latest_time)
        if hours_between(latest, min(p.a.first_time, p.b.first_time)) <= 36 + 18:
            ids = (min(p.a.story_id, p.b.story_id), max(p.a.story_id, p.b.story_id))
            scores[ids] = merge_score(p.similarity, p.a, p.b, CALIBRATION)
    ranked = {
        story: sorted(
            (-score, *(set(ids) - {story})) for ids, score in scores.items() if story in ids
        )
        for story in range(1, 7)
    }
    expected = [
        Merge(a, b, score)
        for (a, b), score in sorted(scores.items())
        if score >= CALIBRATION.merge and ranked[a][0][1] == b and ranked[b][0][1] == a
    ]
    random.shuffle(pairs)
    assert merges(pairs, CALIBRATION) == expected
