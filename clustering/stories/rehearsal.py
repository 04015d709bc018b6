"""The passes without a database: hundreds of settings tried on one stream, each in about a second.

The same decisions as `passes`, taken on whole arrays of vectors held in memory, which the engine
never does. `tests/engine/test_rehearsal.py` holds both side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.cluster.hierarchy import average, fcluster

from clustering.graph import components
from clustering.stories.discover import MAX_COMPONENT_ARTICLES, THRESHOLD_STEP
from clustering.stories.scoring import PRIOR_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from clustering.stories.calibration import Calibration

    Floats = NDArray[np.float32] | NDArray[np.float64]
    Ids = NDArray[np.int64]

_NEVER = -9.0  # below any score


class Step(NamedTuple):
    """What arrives in one slice of time.

    Attributes:
        start: index of its first article.
        stop: index after its last one.
        kept: index of the first article that `vectors` still has.
        vectors: aligned unit vectors in force in this slice, of articles `kept` to at least `stop`,
            of shape (m, dimension), float32.
    """

    start: int
    stop: int
    kept: int
    vectors: NDArray[np.float32]


@dataclass(frozen=True)
class Stream:
    """A corpus as the passes meet it: n articles in order of time, duplicates left out.

    Attributes:
        hours: event times, of shape (n,), float64, ascending.
        languages: a number for each language without script or region, of shape (n,), int64.
        steps: slices of time, in order.
    """

    hours: NDArray[np.float64]
    languages: Ids
    steps: Sequence[Step]
    _reaches: dict[tuple[int, float], NDArray[np.float32]] = field(default_factory=dict)

    def reach(self, neighbours: int, gap_hours: float) -> NDArray[np.float32]:
        """Return the cosine of each article's last nearest neighbour in its window, of shape (n,).

        Kept, since most settings share it.

        Args:
            neighbours: how many nearest articles are looked at.
            gap_hours: how far back the window reaches from the first article of a slice.
        """
        key = (neighbours, gap_hours)
        if key not in self._reaches:
            reaches = [_step_reach(self, step, neighbours, gap_hours) for step in self.steps]
            self._reaches[key] = np.concatenate([np.zeros(0, np.float32), *reaches])
        return self._reaches[key]


def rehearse(stream: Stream, calibration: Calibration) -> Ids:
    """Return the story of each of n articles as the passes would place them; -1 where none.

    Args:
        stream: the corpus.
        calibration: thresholds and windows.

    Returns:
        numbers of shape (n,), int64; a story has that of the oldest story merged into it.
    """
    world = _World(stream, calibration)
    for step in stream.steps:
        world.take(step)
    return world.story


class _World:
    """Stories so far. Rows of the arrays are stories, in the order in which they were made."""

    def __init__(self, stream: Stream, calibration: Calibration) -> None:
        self.calibration = calibration
        self.hours = stream.hours
        self.languages = stream.languages
        articles, tongues = len(stream.hours), int(stream.languages.max(initial=0)) + 1
        most = articles // 2 + 1  # a story has two founders at least
        dimension = stream.steps[0].vectors.shape[1] if stream.steps else 1
        self.story = np.full(articles, -1, np.int64)
        self.members: list[list[int]] = []
        self.loose = np.zeros(0, np.int64)
        self.reach = stream.reach(calibration.neighbours, calibration.story_gap_hours)
        self.centroid = np.zeros((most, dimension), np.float32)
        self.spoken = np.zeros((most, tongues), np.float32)
        self.norm, self.first, self.latest, self.size, self.excess = np.zeros((5, most))
        self.alive = np.zeros(most, bool)
        self.step = Step(0, 0, 0, np.zeros((0, dimension), np.float32))

    def take(self, step: Step) -> None:
        """Run the three passes over one slice."""
        if step.vectors is not self.step.vectors and self.step.stop:
            self._realign(step)
        self.step = step
        gap = self.calibration.story_gap_hours
        self.loose = self.loose[self.hours[self.loose] >= self.hours[step.start] - gap]
        new = np.arange(step.start, step.stop)
        changed = self._match(new, self._live())
        changed |= self._discover(new[self.story[new] < 0])
        changed |= self._match(self.loose, np.array(sorted(changed), np.int64))
        self.loose = self.loose[self.story[self.loose] < 0]
        while changed:
            changed = self._merge(changed)

    def _vectors(self, articles: Ids | Sequence[int]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = self.step.vectors[np.asarray(articles) - self.step.kept]
        return found

    def _live(self) -> Ids:
        known = len(self.members)
        since = self.hours[self.step.start] - self.calibration.story_gap_hours
        return np.flatnonzero(self.alive[:known] & (self.latest[:known] >= since))

    def _realign(self, step: Step) -> None:
        """Recompute the centroids of stories that can still change, from vectors aligned anew."""
        self.step = step
        known = len(self.members)
        longest = self.calibration.story_age_hours + 2 * self.calibration.story_gap_hours
        since = max(self.hours[step.start] - longest, self.hours[step.kept])
        self._refresh(np.flatnonzero(self.alive[:known] & (self.first[:known] >= since)).tolist())

    def _match(self, articles: Ids, stories: Ids) -> set[int]:
        """Pass 1. Returns the stories that grew."""
        if not len(articles) or not len(stories):
            return set()
        scores = self._match_scores(articles, stories)
        best = scores.argmax(axis=1)
        joining = scores[np.arange(len(articles)), best] >= self.calibration.match
        grown = stories[best[joining]]
        for article, story in zip(articles[joining].tolist(), grown.tolist(), strict=True):
            self.members[story].append(article)
        self.story[articles[joining]] = grown
        return self._refresh(set(grown.tolist()))

    def _match_scores(self, articles: Ids, stories: Ids) -> Floats:
        calibration, at = self.calibration, self.hours[articles][:, None]
        apart = np.maximum(self.first[stories] - at, at - self.latest[stories]).clip(min=0)
        scores = self._vectors(articles) @ self.centroid[stories].T * self.norm[stories]
        scores -= calibration.time_penalty * np.log1p(apart)
        scores -= calibration.language_penalty * self.spoken[stories][:, self.languages[articles]].T
        scores -= calibration.match_cohesion_penalty * self.excess[stories]
        late = at - self.first[stories] > calibration.story_age_hours
        return np.where(late | (apart > calibration.story_gap_hours), _NEVER, scores)

    def _discover(self, new: Ids) -> set[int]:
        """Pass 2. Returns the new stories; what stays loose waits for later ones."""
        loose = np.concatenate([self.loose, new])
        self.loose = loose
        if not len(new) or len(loose) < 2:
            return set()
        made = set()
        for component in self._components(loose, *self._links(new, loose)):
            for group in self._cut_chains(component):
                made.add(len(self.members))
                self.story[group] = len(self.members)
                self.members.append(group.tolist())
        self.loose = loose[self.story[loose] < 0]
        return self._refresh(made)

    def _links(self, new: Ids, loose: Ids) -> tuple[Ids, Ids, Floats]:
        """Return the pairs of loose articles, by their places in `loose`, at or above `link`."""
        cosines = self._vectors(new) @ self._vectors(loose).T
        scores = cosines - self._pair_penalties(new, loose)
        scores[cosines < self.reach[new][:, None]] = _NEVER
        apart = np.abs(self.hours[new][:, None] - self.hours[loose])
        scores[(apart > self.calibration.story_gap_hours) | (new[:, None] == loose)] = _NEVER
        rows, columns = np.nonzero(scores >= self.calibration.link)
        return rows + len(loose) - len(new), columns, scores[rows, columns]

    def _pair_penalties(self, some: Ids, others: Ids) -> Floats:
        apart = np.abs(self.hours[some][:, None] - self.hours[others])
        alike = self.languages[some][:, None] == self.languages[others]
        late = self.calibration.time_penalty * np.log1p(apart)
        penalties: Floats = late + self.calibration.language_penalty * alike
        return penalties

    def _components(self, loose: Ids, rows: Ids, columns: Ids, scores: Floats) -> Iterator[Ids]:
        """Yield linked components; a large one is cut at the threshold where it comes apart."""
        threshold = self.calibration.link
        pending = [(rows, columns, scores, threshold)]
        while pending:
            rows, columns, scores, threshold = pending.pop()
            for places in _linked(rows, columns):
                if len(places) <= MAX_COMPONENT_ARTICLES:
                    yield loose[places]
                    continue
                inside = np.isin(rows, places) & (scores >= threshold + THRESHOLD_STEP)
                if inside.any():
                    pending.append(
                        (rows[inside], columns[inside], scores[inside], threshold + THRESHOLD_STEP)
                    )
                else:
                    parts = -(-len(places) // MAX_COMPONENT_ARTICLES)
                    yield from np.array_split(loose[places], parts)

    def _cut_chains(self, component: Ids) -> list[Ids]:
        if len(component) == 2:
            return [component]
        vectors = self._vectors(component)
        scores = vectors @ vectors.T - self._pair_penalties(component, component)
        distances = np.clip(1 - scores, 0, None)[np.triu_indices(len(component), 1)]
        furthest = 1 - self.calibration.link + self.calibration.chain_slack
        labels = fcluster(average(distances), furthest, "distance")
        parts = [component[labels == label] for label in np.unique(labels)]
        return [part for part in parts if len(part) > 1]

    def _merge(self, changed: set[int]) -> set[int]:
        """Pass 3, one round: stories that are each other's nearest. Returns the survivors."""
        live = self._live()
        ahead = self.hours[self.step.stop - 1] + self.calibration.story_gap_hours
        live = live[self.first[live] <= ahead]
        rows = np.flatnonzero(np.isin(live, list(changed)))
        if len(live) < 2 or not len(rows):
            return set()
        scores = self._merge_scores(live, rows)
        nearest, best = scores.argmax(axis=1), scores.max(axis=1)
        able = best >= self.calibration.merge
        backs = np.unique(nearest[able])
        returned = dict(zip(backs, self._merge_scores(live, backs).argmax(axis=1), strict=True))
        pairs = {
            (min(live[a], live[b]), max(live[a], live[b]))
            for a, b in zip(rows[able], nearest[able], strict=True)
            if returned[b] == a
        }
        return self._refresh([self._absorb(int(a), int(b)) for a, b in sorted(pairs)])

    def _absorb(self, survivor: int, absorbed: int) -> int:
        self.story[self.members[absorbed]] = survivor
        self.members[survivor] += self.members[absorbed]
        self.members[absorbed] = []
        self.alive[absorbed] = False
        return survivor

    def _merge_scores(self, live: Ids, rows: Ids) -> Floats:
        """Return the scores of some live stories (by place) against all, of shape (rows, live)."""
        calibration, own = self.calibration, live[rows]
        first, latest = self.first[own][:, None], self.latest[own][:, None]
        apart = np.maximum(first - self.latest[live], self.first[live] - latest).clip(min=0)
        span = np.maximum(latest, self.latest[live]) - np.minimum(first, self.first[live])
        scores = self.centroid[own] @ self.centroid[live].T
        scores -= calibration.time_penalty * np.log1p(apart)
        scores -= calibration.language_penalty * (self.spoken[own] @ self.spoken[live].T)
        smaller = np.minimum(self.size[own][:, None], self.size[live])
        scores -= calibration.merge_size_penalty * np.log(smaller)
        tightest = np.maximum(self.excess[own][:, None], self.excess[live])
        scores -= calibration.merge_cohesion_penalty * tightest
        longest = calibration.story_age_hours + calibration.story_gap_hours
        scores[(span > longest) | (own[:, None] == live)] = _NEVER
        return scores

    def _refresh(self, stories: Iterable[int]) -> set[int]:
        """Bring all that follows from the members of some stories up to date; returns them."""
        done = set(stories)
        for story in done:
            members = self.members[story]
            members.sort()
            recent = members[-self.calibration.centroid_members :]
            mean = self._vectors(recent).mean(axis=0)
            norm = float(np.sqrt(mean @ mean))
            # Rounded as the database keeps it.
            self.centroid[story] = (mean / norm).astype(np.float16)
            self.norm[story] = norm
            self.size[story] = len(members)
            self.first[story], self.latest[story] = self.hours[[members[0], members[-1]]]
            shares = np.bincount(self.languages[recent], minlength=self.spoken.shape[1])
            self.spoken[story] = shares / len(recent)
            self.excess[story] = self._excess(norm, self.spoken[story], len(recent))
            self.alive[story] = True
        return done

    def _excess(self, norm: float, spoken: NDArray[np.float32], members: int) -> float:
        """Return what `settled_cohesion` exceeds the prior by, of two members or more."""
        cohesion = (members * norm * norm - 1) / (members - 1)
        alike = max(0.0, (members * float(spoken @ spoken) - 1) / (members - 1))
        own = cohesion - self.calibration.language_penalty * alike - self.calibration.cohesion_prior
        return (members - 1) * own / (members - 1 + PRIOR_MEMBERS)


def _linked(rows: Ids, columns: Ids) -> list[Ids]:
    """Return the connected components of two places and more."""
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [np.array(component) for component in components(pairs)]


def _step_reach(
    stream: Stream, step: Step, neighbours: int, gap_hours: float
) -> NDArray[np.float32]:
    since = np.searchsorted(stream.hours, stream.hours[step.start] - gap_hours)
    window = step.vectors[since - step.kept : step.stop - step.kept]
    own = step.vectors[step.start - step.kept : step.stop - step.kept]
    # One more than asked for, as an article is its own nearest neighbour.
    if len(window) <= neighbours + 1:
        return np.full(len(own), -np.inf, np.float32)
    place = len(window) - neighbours - 1
    least: NDArray[np.float32] = np.partition(own @ window.T, place, axis=1)[:, place]
    return least - np.float32(1e-6)
