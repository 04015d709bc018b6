"""What the bounds in SQL leave out could never have been decided on: held against every pair."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations, product

import numpy as np
import pytest
from worlds import CALIBRATION, DIMENSION, at

from clustering.stories.match import Candidate
from clustering.stories.near import Near
from clustering.stories.scoring import StoryShape, merge_score

# As loose as stories get, so that some gain by their cohesion and some lose.
RULES = replace(
    CALIBRATION,
    match=0.5,
    attach=0.4,
    link=0.6,
    merge=0.7,
    neighbours=50,
    time_penalty=0.01,
    language_penalty=0.05,
    match_cohesion_penalty=0.4,
    merge_cohesion_penalty=0.6,
    merge_size_penalty=0.02,
    cohesion_prior=0.75,
)
WINDOW = {"window_first": at(0), "window_last": at(30)}
LIVE = (at(-24), at(54))


@pytest.fixture(params=[1, 2, 3])
def crowded(world, request):
    """Forty articles around a few centres, some languages, placed by the passes; returns the live stories."""
    random = np.random.default_rng(request.param)
    centres = random.normal(size=(5, DIMENSION))
    for number in range(40):
        vector = centres[number % 5] + 0.8 * random.normal(size=DIMENSION)
        unit = (vector / np.linalg.norm(vector)).astype(np.float32)
        world.add(unit, float(random.uniform(0, 20)), language=("en", "de", "ja")[number % 3])
    world.cluster(**{name: getattr(RULES, name) for name in ("match", "attach", "link", "merge")})
    return world


def stories(world) -> dict[int, tuple[StoryShape, np.ndarray, float]]:
    rows = world.sql(
        "SELECT story_id, first_time, latest_time, size, cohesion, languages, centroid, mean_norm "
        "FROM story_vector_tiny"
    )
    return {
        row.story_id: (StoryShape(*row[:6]), row.centroid.to_numpy().astype(float), row.mean_norm)
        for row in rows
    }


def loose_articles(world) -> list:
    return world.sql(
        "SELECT p.article_id, p.event_time, a.language, v.aligned FROM story_article p "
        "JOIN article a ON a.id = p.article_id JOIN article_vector_tiny v USING (article_id) "
        "WHERE p.pass IN ('none', 'attach')"
    )


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_every_story_that_a_loose_article_could_join_is_a_candidate(crowded):
    found = Near(crowded.session, RULES).loose(stories(crowded), WINDOW)
    offered = {(c.article_id, c.story.story_id): c.score(RULES) for c in found.candidates}
    able = {}
    for article, (shape, centroid, norm) in product(
        loose_articles(crowded), stories(crowded).values()
    ):
        similarity = cosine(article.aligned.to_numpy().astype(float), centroid) * norm
        candidate = Candidate(*article[:3], similarity, shape)
        if candidate.score(RULES) >= RULES.attach:
            able[article.article_id, shape.story_id] = candidate.score(RULES)
    assert able
    assert {pair: offered[pair] for pair in able} == pytest.approx(able, abs=1e-6)
    assert len(offered) < len(loose_articles(crowded)) * len(stories(crowded))


def test_every_pair_of_stories_that_could_merge_is_found(crowded):
    rules = replace(RULES, merge=0.1)
    shapes = stories(crowded)
    pairs = Near(crowded.session, rules).pairs_of_stories(shapes, *LIVE)
    found = {frozenset((pair.a.story_id, pair.b.story_id)) for pair in pairs}
    able = {
        frozenset((a, b))
        for a, b in combinations(shapes, 2)
        if merge_score(cosine(shapes[a][1], shapes[b][1]), shapes[a][0], shapes[b][0], rules)
        >= rules.merge
    }
    assert able
    assert able <= found


def test_what_a_changed_story_could_merge_with_is_looked_at_in_turn(crowded):
    rules = replace(RULES, merge=0.1)
    near = Near(crowded.session, rules)
    every = near.pairs_of_stories(stories(crowded), *LIVE)
    one = every[0].a.story_id
    seen = {(pair.a.story_id, pair.b.story_id) for pair in near.pairs_of_stories({one}, *LIVE)}
    assert {pair for pair in seen if pair[0] == one} == {
        (pair.a.story_id, pair.b.story_id) for pair in every if pair.a.story_id == one
    }
    assert {a for a, _ in seen} - {one} <= {b for a, b in seen if a == one}


def test_candidates_of_many_articles_have_their_own_times_and_languages(crowded):
    articles = crowded.sql(
        "SELECT article_id, v.event_time, a.language FROM article_vector_tiny v JOIN article a ON a.id = article_id"
    )
    times = {row.article_id: row.event_time for row in articles}
    day = timedelta(hours=24)
    found = Near(crowded.session, RULES).stories(times, day, 3 * day)
    assert {c.article_id for c in found} == times.keys()
    known = {row.article_id: (row.event_time, row.language) for row in articles}
    assert all((c.event_time, c.language) == known[c.article_id] for c in found)


def test_nothing_is_asked_for_nothing(world):
    near = Near(world.session, RULES)
    assert near.pairs_of_stories([], *LIVE) == []
    assert near.loose([], WINDOW).candidates == []
