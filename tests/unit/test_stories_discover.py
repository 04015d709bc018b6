from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from plain_calibration import PLAIN

from clustering.stories.discover import (
    MAX_COMPONENT_ARTICLES,
    Edge,
    Loose,
    Neighbour,
    edges,
    founders,
    groups,
)
from clustering.stories.placement import Placement

START = datetime(2026, 3, 1, tzinfo=UTC)
CALIBRATION = PLAIN


def near(a, b, similarity) -> Neighbour:
    return Neighbour(a, b, similarity)


def loose(hours_by_id, language="en") -> dict[int, Loose]:
    return {
        article: Loose(START + timedelta(hours=hours), language)
        for article, hours in hours_by_id.items()
    }


def now(ids) -> dict[int, Loose]:
    return loose(dict.fromkeys(ids, 0))


def cosines(table):
    """Similarities from a table of pairs; pairs that it lacks have cosine 0."""

    def similarities(ids):
        found = np.eye(len(ids))
        for i, a in enumerate(ids):
            for j, b in enumerate(ids):
                if a != b:
                    found[i, j] = table.get((min(a, b), max(a, b)), 0.0)
        return found

    return similarities


def block(ids, similarity) -> dict[tuple[int, int], float]:
    return {(a, b): similarity for a in ids for b in ids if a < b}


def links_of(table, least=0.5) -> list[Edge]:
    return [Edge(a, b, score) for (a, b), score in sorted(table.items()) if score >= least]


def found_groups(table, ids, calibration=CALIBRATION):
    return groups(links_of(table), now(ids), cosines(table), calibration)


def test_a_pair_seen_from_both_sides_is_one_edge():
    found = edges([near(2, 1, 0.7), near(1, 2, 0.7)], now([1, 2]), CALIBRATION)
    assert found == [Edge(1, 2, 0.7)]


def test_articles_in_a_story_have_no_edges():
    assert edges([near(1, 2, 0.9), near(2, 1, 0.9)], now([1]), CALIBRATION) == []


def test_edges_reach_the_threshold_and_stay_in_the_window():
    seen = [near(1, 2, 0.5), near(1, 3, 0.499), near(1, 4, 0.9), near(1, 5, 0.9)]
    found = edges(seen, loose({1: 0, 2: 0, 3: 0, 4: 18, 5: 18.1}), CALIBRATION)
    assert [(edge.a, edge.b) for edge in found] == [(1, 2), (1, 4)]


def test_time_between_articles_lowers_their_score():
    calibration = replace(CALIBRATION, time_penalty=0.1)
    (edge,) = edges([near(1, 2, 0.8)], loose({1: 0, 2: float(np.expm1(1))}), calibration)
    assert edge.score == pytest.approx(0.7)


def test_one_language_lowers_the_score_of_two_articles():
    calibration = replace(CALIBRATION, language_penalty=0.1)
    mixed = loose({1: 0, 2: 0}) | loose({3: 0}, "ja")
    found = edges([near(1, 2, 0.8), near(1, 3, 0.8)], mixed, calibration)
    assert [edge.score for edge in found] == pytest.approx([0.7, 0.8])


def test_nothing_linked_nothing_found():
    assert groups([], {}, cosines({}), CALIBRATION) == []


def test_two_linked_articles_make_a_story():
    assert found_groups({(1, 2): 0.5}, [1, 2]) == [[1, 2]]


def test_a_chain_is_cut():
    chain = {(1, 2): 0.8, (2, 3): 0.55, (3, 4): 0.8}
    assert found_groups(chain, range(1, 5)) == [[1, 2], [3, 4]]


def test_what_hangs_together_by_more_than_a_chain_stays_whole():
    table = block(range(1, 5), 0.47) | {(1, 2): 0.8, (2, 3): 0.55, (3, 4): 0.8}
    assert found_groups(table, range(1, 5)) == [[1, 2, 3, 4]]


def test_the_slack_says_how_loose_a_component_may_be():
    table = block(range(1, 5), 0.4) | {(1, 2): 0.8, (2, 3): 0.55, (3, 4): 0.8}
    assert len(found_groups(table, range(1, 5))) == 2
    assert len(found_groups(table, range(1, 5), replace(CALIBRATION, chain_slack=0.2))) == 1


def test_an_article_cut_off_from_a_chain_alone_makes_no_story():
    table = block([1, 2, 3], 0.9) | {(3, 4): 0.5}
    assert found_groups(table, range(1, 5)) == [[1, 2, 3]]


def test_time_counts_inside_a_component_as_it_does_between_two():
    table = block([1, 2, 3], 0.6)
    spread = loose({1: 0, 2: 0, 3: 17})
    timed = replace(CALIBRATION, time_penalty=0.1)
    assert groups(links_of(table), spread, cosines(table), timed) == [[1, 2]]
    assert groups(links_of(table), spread, cosines(table), CALIBRATION) == [[1, 2, 3]]


def test_language_counts_inside_a_component_as_it_does_between_two():
    table = block([1, 2, 3], 0.5)
    mixed = loose({1: 0, 2: 0}, "ja") | loose({3: 0}, "bn")
    strict = replace(CALIBRATION, language_penalty=0.2)
    assert groups(links_of(table), mixed, cosines(table), strict) == [[1, 3]]
    assert groups(links_of(table), mixed, cosines(table), CALIBRATION) == [[1, 2, 3]]


def test_a_component_too_large_is_cut_where_it_is_weakest():
    half = MAX_COMPONENT_ARTICLES // 2 + 1
    left, right = range(half), range(half, 2 * half)
    links = [Edge(a, a + 1, 0.9) for a in range(2 * half - 1) if a != half - 1]
    links.append(Edge(half - 1, half, 0.51))

    def alike(ids):
        return np.full((len(ids), len(ids)), 0.9)

    found = groups(links, now(range(2 * half)), alike, CALIBRATION)
    assert found == [list(left), list(right)]


def test_a_component_too_large_and_alike_throughout_is_not_lost():
    ids = range(MAX_COMPONENT_ARTICLES + 100)
    links = [Edge(a, a + 1, 1.0) for a in ids[:-1]]

    def alike(some):
        assert len(some) <= MAX_COMPONENT_ARTICLES
        return np.ones((len(some), len(some)))

    found = groups(links, now(ids), alike, CALIBRATION)
    assert sorted(article for group in found for article in group) == list(ids)


def test_founders_have_their_strongest_link_inside_the_story():
    links = [Edge(1, 2, 0.6), Edge(1, 3, 0.8), Edge(2, 9, 0.99)]
    assert founders([[1, 2, 3]], [70], links, CALIBRATION) == [
        Placement(1, 70, "discover", 0.8, 0.5, 3),
        Placement(2, 70, "discover", 0.6, 0.5, 1),
        Placement(3, 70, "discover", 0.8, 0.5, 1),
    ]


def test_a_founder_without_a_link_of_its_own_has_no_score():
    placed = founders([[1, 2, 4]], [70], [Edge(1, 2, 0.6)], CALIBRATION)
    assert placed[2] == Placement(4, 70, "discover", None, 0.5, None)


def test_among_equal_links_the_lowest_id_is_named():
    links = [Edge(1, 4, 0.6), Edge(2, 4, 0.6), Edge(3, 4, 0.6)]
    assert founders([[1, 2, 3, 4]], [70], links, CALIBRATION)[3].nearest_id == 1


def test_a_link_between_two_new_stories_counts_for_neither():
    links = [Edge(1, 2, 0.6), Edge(2, 3, 0.9), Edge(3, 4, 0.7)]
    placed = founders([[1, 2], [3, 4]], [70, 71], links, CALIBRATION)
    assert [(p.story_id, p.score, p.nearest_id) for p in placed] == [
        (70, 0.6, 2),
        (70, 0.6, 1),
        (71, 0.7, 4),
        (71, 0.7, 3),
    ]
