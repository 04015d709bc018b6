"""Events of random stories, told batch by batch, against average linkage done the slow way."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations, product
from math import log1p

import numpy as np
import pytest
from worlds import DIMENSION

from clustering.events.linker import EventRules, Linker

GAP = timedelta(days=7)
GAP_HOURS = 168.0
DAY = 24.0


def stories(world, random, count):
    """Stories of two articles about some subjects, within a week; returns their ids."""
    subjects = random.normal(size=(5, DIMENSION))
    articles = []
    for hours in np.sort(random.uniform(0, 6.5 * DAY, count)):
        vector = subjects[random.integers(5)] + 0.7 * random.normal(size=DIMENSION)
        vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        pair = [world.add(vector, hours + late) for late in (0, float(random.uniform(0, 5)))]
        world.cluster(match=1, attach=1, merge=1, link=0.999)
        articles.append(pair[0])
    return [world.story_of(article) for article in articles]


class Slow:
    """Every pair of clusters scored in every round, and the nearest two of all joined."""

    def __init__(self, world, rules):
        self.rules = rules
        self.stories = {row.story_id: row for row in world.sql("SELECT * FROM story_vector_tiny")}
        self.clusters = []

    def take(self, story_ids):
        self.clusters += [{story} for story in story_ids]
        while True:
            scored = [(self.score(a, b), a, b) for a, b in combinations(self.clusters, 2)]
            best, a, b = max(scored, key=lambda found: found[0])
            if best < self.rules.link:
                return
            self.clusters = [c for c in self.clusters if c not in (a, b)] + [a | b]

    def score(self, a, b):
        return float(np.mean([self.pair(one, other) for one, other in product(a, b)]))

    def pair(self, one, other):
        a, b = self.stories[one], self.stories[other]
        x, y = (row.centroid.to_numpy().astype(np.float64) for row in (a, b))
        cosine = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        apart = max(a.first_time - b.latest_time, b.first_time - a.latest_time, timedelta())
        return cosine - self.rules.time_penalty * log1p(apart / timedelta(days=1))


def linked(world, told):
    """Members of each event, and stories in none by themselves, of the stories told so far."""
    found = {}
    for story, event in world.sql(
        "SELECT s.id, e.event_id FROM story s LEFT JOIN event_story e ON e.story_id = s.id"
    ):
        if story in told:
            found.setdefault(event or -story, set()).add(story)
    return {frozenset(members) for members in found.values()}


@pytest.mark.parametrize("seed", range(8))
def test_events_are_average_linkage_batch_by_batch(world, seed):
    random = np.random.default_rng(seed)
    rules = EventRules(float(random.uniform(0.3, 0.7)), GAP, float(random.choice([0, 0.05])), 100)
    ids = stories(world, random, 24)
    slow = Slow(world, rules)
    parts = np.array_split(ids, random.integers(1, 7))
    change = {row.id: row.change for row in world.sql("SELECT id, change FROM story")}
    for part in parts:
        # What a later batch brings is not there yet: stories of one article are in no event.
        later = [story for story in ids if change[story] > change[part[-1]]]
        world.sql("UPDATE story_vector_tiny SET size = 1 WHERE story_id = ANY (%s)", later)
        world.sql("UPDATE story_vector_tiny SET size = 2 WHERE story_id = ANY (%s)", part.tolist())
        Linker(world.session, rules, world.run_id()).run()
        world.sql("UPDATE event_progress SET change = %s", change[part[-1]])
        slow.take(part.tolist())
        told = set().union(*slow.clusters)
        assert linked(world, told) == {frozenset(cluster) for cluster in slow.clusters}, seed


def test_the_recorded_score_is_that_of_the_slow_way(world):
    rules = EventRules(0.4, GAP, 0.05, 100)
    one, other = stories(world, np.random.default_rng(1), 2)
    slow = Slow(world, rules)
    rules = EventRules(-1, GAP, 0.05, 100)
    Linker(world.session, rules, world.run_id()).run()
    scores = world.sql("SELECT score FROM event_story")
    assert [row.score for row in scores] == pytest.approx([slow.pair(one, other)] * 2, abs=1e-4)
