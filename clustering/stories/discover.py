"""Pass 2: articles that joined no story are linked with each other; each group is a new story."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import average, fcluster

from clustering.graph import components
from clustering.stories.placement import Placement
from clustering.stories.scoring import hours, pair_score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from numpy.typing import NDArray

    from clustering.stories.calibration import Calibration

# Average linkage takes all pairs of a component: 300 articles are 45,000 pairs. A larger one is
# first cut by a higher threshold, and pass 3 joins again what belongs together.
MAX_COMPONENT_ARTICLES = 300
THRESHOLD_STEP = 0.02
# Between articles that were judged different: over 300 times 300 pairs still far above any threshold.
_NEVER = 1e6


class Loose(NamedTuple):
    """An article in no story: its event time, and its language without script or region."""

    event_time: datetime
    language: str


class Neighbour(NamedTuple):
    """Two articles near each other.

    Attributes:
        article_id: the article whose neighbours were looked for.
        other_id: its neighbour.
        similarity: cosine of their aligned vectors.
    """

    article_id: int
    other_id: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Edge:
    """Two articles and their score; `a` is the lower id."""

    a: int
    b: int
    score: float


def edges(
    neighbours: Iterable[Neighbour],
    loose: Mapping[int, Loose],
    calibration: Calibration,
    apart: AbstractSet[frozenset[int]] = frozenset(),
) -> list[Edge]:
    """Return the links among articles that are in no story, each pair once, sorted.

    Args:
        neighbours: what the database found near the new articles.
        loose: the articles that are in no story, by id.
        calibration: gives the threshold `link`, the window and the penalties.
        apart: pairs of articles that were judged different.
    """
    found: dict[tuple[int, int], float] = {}
    for near in neighbours:
        one, other = loose.get(near.article_id), loose.get(near.other_id)
        if one is None or other is None or frozenset((near.article_id, near.other_id)) in apart:
            continue
        gap = one.event_time - other.event_time
        score = pair_score(near.similarity, gap, one.language == other.language, calibration)
        if score >= calibration.link and abs(hours(gap)) <= calibration.story_gap_hours:
            pair = (min(near.article_id, near.other_id), max(near.article_id, near.other_id))
            found[pair] = score
    return [Edge(a, b, score) for (a, b), score in sorted(found.items())]


def groups(
    links: Sequence[Edge],
    loose: Mapping[int, Loose],
    similarities: Callable[[Sequence[int]], NDArray[np.float64]],
    calibration: Calibration,
    apart: AbstractSet[frozenset[int]] = frozenset(),
) -> list[list[int]]:
    """Return the new stories: groups of two or more article ids.

    Union-find gives components; a component that hangs together through a chain only is cut where
    average linkage falls `chain_slack` below `link`. Average linkage and not mutual nearest
    neighbours, because a published report and our own replay both lose less recall with it.

    Args:
        links: edges at or above `link`.
        loose: the articles by id.
        similarities: given n ids, returns their (n, n) float64 cosines.
        calibration: gives `link`, `chain_slack` and the penalties.
        apart: pairs of articles that no group may hold.
    """
    found: list[list[int]] = []
    for component in _small_components(links, calibration.link):
        found += _cut_chains(component, loose, similarities, calibration, apart)
    return sorted(group for group in found if len(group) > 1)


def founders(
    found: Sequence[Sequence[int]],
    story_ids: Sequence[int],
    links: Iterable[Edge],
    calibration: Calibration,
) -> list[Placement]:
    """Return the placements of new stories' articles, each with its strongest link inside its story.

    An article that average linkage holds in a group may have no link of its own there: its score
    is then None.

    Args:
        found: groups of article ids.
        story_ids: the story that each group founds.
        links: edges at or above `link`.
        calibration: gives `link`.
    """
    owner = {article: i for i, group in zip(story_ids, found, strict=True) for article in group}
    best: dict[int, tuple[float, int]] = {}
    for edge in links:
        if edge.a in owner and owner[edge.a] == owner.get(edge.b):
            for own, other in ((edge.a, edge.b), (edge.b, edge.a)):
                best[own] = max(best.get(own, (-2.0, 0)), (edge.score, -other))
    return [
        _founder(article, i, best.get(article), calibration.link) for article, i in owner.items()
    ]


def _founder(
    article: int, story_id: int, best: tuple[float, int] | None, threshold: float
) -> Placement:
    score, nearest = (best[0], -best[1]) if best else (None, None)
    return Placement(article, story_id, "discover", score, threshold, nearest)


def _small_components(links: Sequence[Edge], threshold: float) -> list[list[int]]:
    """Return the components at a threshold, the too large ones at the threshold that cuts them."""
    found: list[list[int]] = []
    for component in components((edge.a, edge.b) for edge in links):
        if len(component) <= MAX_COMPONENT_ARTICLES:
            found.append(component)
            continue
        members = frozenset(component)
        stricter = threshold + THRESHOLD_STEP
        inside = [edge for edge in links if edge.a in members and edge.score >= stricter]
        # A component alike throughout, such as copies of a template, comes apart nowhere.
        found += _small_components(inside, stricter) or _blocks(component)
    return found


def _blocks(component: list[int]) -> list[list[int]]:
    parts = -(-len(component) // MAX_COMPONENT_ARTICLES)
    return [part.tolist() for part in np.array_split(component, parts)]


def _cut_chains(
    component: list[int],
    loose: Mapping[int, Loose],
    similarities: Callable[[Sequence[int]], NDArray[np.float64]],
    calibration: Calibration,
    apart: AbstractSet[frozenset[int]],
) -> list[list[int]]:
    if len(component) == 2:
        return [component]
    distances = np.clip(
        1 - similarities(component) + _penalties([loose[a] for a in component], calibration),
        0,
        None,
    )
    for a, b in combinations(range(len(component)), 2) if apart else ():
        if frozenset((component[a], component[b])) in apart:
            distances[a, b] = distances[b, a] = _NEVER
    tree = average(distances[np.triu_indices(len(component), 1)])
    labels = fcluster(tree, 1 - calibration.link + calibration.chain_slack, "distance")
    parts: dict[int, list[int]] = {}
    for article, label in zip(component, labels, strict=True):
        parts.setdefault(int(label), []).append(article)
    return list(parts.values())


def _penalties(articles: Sequence[Loose], calibration: Calibration) -> NDArray[np.float64]:
    """Return what `pair_score` takes off the cosine of each pair of n articles, of shape (n, n)."""
    at = np.array([article.event_time.timestamp() for article in articles]) / 3600
    tongues = np.array([article.language for article in articles])
    late = calibration.time_penalty * np.log1p(np.abs(at[:, None] - at[None, :]))
    alike = tongues[:, None] == tongues[None, :]
    return np.asarray(late + calibration.language_penalty * alike)
