"""Whatever the order in which articles are stored, the stories are the same; and all that must hold does."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import DIMENSION, at

SEEDS = st.integers(0, 2**32 - 1)
# The database is emptied between examples, which is all that the fixture's sharing could spoil.
SHARED = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def stream(seed: int, count: int) -> list[tuple[np.ndarray, float]]:
    """Articles of a few events over two days; no two of one time, and no ties."""
    random = np.random.default_rng(seed)
    events = random.normal(size=(4, DIMENSION))
    of_event = random.integers(0, 4, count)
    vectors = events[of_event] + 0.45 * random.normal(size=(count, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    hours = 9.0 * of_event + random.uniform(0, 30, count)
    return list(zip(vectors.astype(np.float32), hours.tolist(), strict=True))


def emptied(world) -> None:
    world.sql(
        "TRUNCATE run, feed, article, story, story_article, story_vector_tiny, article_vector_tiny "
        "RESTART IDENTITY CASCADE"
    )


def told(world, articles, order) -> tuple[set[frozenset[int]], Counter[str]]:
    """Stories as sets of places in `articles`, stored in some order, and what the passes counted."""
    emptied(world)
    place_of = {world.add(*articles[place]): place for place in order}
    counts = world.cluster(match=0.85, link=0.85, merge=0.88, time_penalty=0.02)
    world.check()
    return {frozenset(place_of[a] for a in story) for story in world.stories()}, counts


@SHARED
@given(SEEDS, st.integers(2, 24), st.randoms(use_true_random=False))
def test_the_order_in_which_articles_are_stored_does_not_matter(world, seed, count, random):
    articles = stream(seed, count)
    order = list(range(count))
    expected = told(world, articles, order)
    random.shuffle(order)
    assert told(world, articles, order) == expected


@SHARED
@given(SEEDS, st.integers(2, 24), st.floats(0, 48))
def test_running_twice_with_a_break_is_running_once(world, seed, count, break_hours):
    articles = stream(seed, count)
    expected, _ = told(world, articles, range(count))
    emptied(world)
    place_of = {world.add(vector, hours): p for p, (vector, hours) in enumerate(articles)}
    changes = {"match": 0.85, "link": 0.85, "merge": 0.88, "time_penalty": 0.02}
    # The break is at a slice's edge: articles of one hour that come apart are two slices.
    world.cluster(as_of=at(int(break_hours) - 1e-6), **changes)
    world.cluster(**changes)
    assert {frozenset(place_of[a] for a in story) for story in world.stories()} == expected


@SHARED
@given(SEEDS, st.integers(2, 24), st.randoms(use_true_random=False))
def test_late_articles_in_any_order_leave_everything_consistent(world, seed, count, random):
    emptied(world)
    articles = stream(seed, count)
    random.shuffle(articles)
    totals = Counter[str]()
    for start in range(0, count, 5):
        for vector, hours in articles[start : start + 5]:
            world.add(vector, hours)
        totals += world.cluster(match=0.85, link=0.85, merge=0.88)
        world.check()
    placed = world.one("SELECT count(*) FROM story_article WHERE story_id IS NOT NULL")
    assert placed == totals["matched"] + totals["discovered"]
    made = world.one("SELECT count(*) FROM story")
    live = world.one("SELECT count(*) FROM story WHERE merged_into IS NULL")
    assert (made, made - live) == (totals["stories"], totals["merges"])
