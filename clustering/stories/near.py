"""What the database finds near articles and stories: pairs of numbers, and the shape of each story once.

A pass looks at fifty neighbours of each article or story, so that what a row holds decides how long it
takes. Rows are ids and a cosine; and where a threshold bounds the cosine from below, those under it stay
in the database.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from clustering.stories.discover import Neighbour
from clustering.stories.match import Candidate
from clustering.stories.merge import StoryPair, close_stories
from clustering.stories.scoring import StoryShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clustering.store.session import Session
    from clustering.stories.calibration import Calibration

# As published (3mins.news): enough for one round trip to pay, few enough to stay in memory.
BATCH_ARTICLES = 200
# Less of a day than this is scanned instead of searched by index.
SCANNED = timedelta(hours=6)
_DAY = timedelta(days=1)


class LooseCandidates(NamedTuple):
    """Articles in no story, or only attached to one, and the changed stories near them.

    Attributes:
        candidates: the pairs.
        times: event time by article.
        held_scores: score by which an article is attached already; None where it is not.
    """

    candidates: list[Candidate]
    times: dict[int, datetime]
    held_scores: dict[int, float | None]


class Near:
    """Asks what is near.

    Args:
        session: bound to the space.
        calibration: gives how many neighbours are looked at, and the thresholds.
    """

    def __init__(self, session: Session, calibration: Calibration) -> None:
        self._session = session
        self._calibration = calibration

    def articles(
        self, times: Mapping[int, datetime], window: Mapping[str, datetime]
    ) -> Iterator[Neighbour]:
        """Yield the neighbours of some articles, by event time, in a window of time."""
        for article_ids in _batches(times):
            rows = self._session.rows(
                "article_neighbours",
                article_ids=article_ids,
                first=min(times.values()),
                last=max(times.values()),
                most=self._calibration.neighbours + 1,
                **window,
                **searched(**window),
            )
            yield from map(Neighbour._make, rows)

    def stories(
        self, times: Mapping[int, datetime], gap: timedelta, age: timedelta
    ) -> list[Candidate]:
        """Return the live stories near some articles, by event time."""
        pairs: list[tuple[int, int, float]] = []
        for article_ids in _batches(times):
            pairs += self._session.rows(
                "story_candidates",
                article_ids=article_ids,
                first=min(times.values()),
                last=max(times.values()),
                gap=gap,
                age=age,
                most=self._calibration.neighbours,
            )
        return self._candidates(pairs, times)

    def loose(self, story_ids: Iterable[int], window: Mapping[str, datetime]) -> LooseCandidates:
        """Return what is in no story for good, and near some stories that changed."""
        calibration = self._calibration
        pairs = self._session.rows(
            "loose_near",
            story_ids=sorted(story_ids),
            least=calibration.attach,
            penalty=calibration.match_cohesion_penalty,
            tightest=_no_bonus_from(calibration),
            **window,
        )
        times = {pair.article_id: pair.event_time for pair in pairs}
        held = {pair.article_id: pair.held_score for pair in pairs}
        found = [(pair.article_id, pair.story_id, pair.similarity) for pair in pairs]
        return LooseCandidates(self._candidates(found, times), times, held)

    def pairs_of_stories(
        self, story_ids: Iterable[int], live_from: datetime, live_to: datetime
    ) -> list[StoryPair]:
        """Return the nearest stories of some that changed, and those of the ones they could merge with."""
        touched = set(story_ids)
        live = {"live_from": live_from, "live_to": live_to}
        pairs = self._story_pairs(touched, live)
        around = close_stories(pairs, self._calibration) - touched
        return pairs + self._story_pairs(around, live)

    def _story_pairs(
        self, story_ids: Iterable[int], live: Mapping[str, datetime]
    ) -> list[StoryPair]:
        calibration = self._calibration
        pairs = self._session.rows(
            "nearest_stories",
            story_ids=sorted(story_ids),
            most=calibration.neighbours,
            least=calibration.merge,
            penalty=calibration.merge_cohesion_penalty,
            tightest=_no_bonus_from(calibration),
            **live,
        )
        shapes = self._shapes({story for pair in pairs for story in (pair.a_id, pair.b_id)})
        return [StoryPair(shapes[pair.a_id], shapes[pair.b_id], pair.similarity) for pair in pairs]

    def _candidates(
        self, pairs: Sequence[tuple[int, int, float]], times: Mapping[int, datetime]
    ) -> list[Candidate]:
        shapes = self._shapes({story for _, story, _ in pairs})
        article_ids = sorted({article for article, _, _ in pairs})
        tongues = dict(self._session.rows("languages_of", article_ids=article_ids))
        return [
            Candidate(article, times[article], tongues[article], similarity, shapes[story])
            for article, story, similarity in pairs
        ]

    def _shapes(self, story_ids: Iterable[int]) -> dict[int, StoryShape]:
        rows = self._session.rows("story_shapes", story_ids=sorted(story_ids))
        return {row.story_id: StoryShape(*row) for row in rows}


def searched(window_first: datetime, window_last: datetime) -> dict[str, datetime]:
    """Return the part of a window whose days have their index searched; the rest of it is scanned.

    A window mostly begins and ends inside a day. The index of such a day finds articles of the whole
    day, of which those outside the window are thrown away.

    Args:
        window_first: event time of the earliest article of the window.
        window_last: event time of the latest.

    Returns:
        `searched_from`, and `searched_to`, which is outside.
    """
    begins, ends = _midnight(window_first) + _DAY, _midnight(window_last)
    return {
        "searched_from": begins if begins - window_first < SCANNED else window_first,
        "searched_to": ends if window_last - ends < SCANNED else ends + _DAY,
    }


def _midnight(time: datetime) -> datetime:
    """Return the beginning of the day in UTC, which partitions are of."""
    return time.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _no_bonus_from(calibration: Calibration) -> float:
    """Return the cohesion from which on a story's cohesion adds nothing to a score."""
    return calibration.cohesion_prior + calibration.language_penalty


def _batches(article_ids: Iterable[int]) -> Iterator[list[int]]:
    ids = list(article_ids)
    for start in range(0, len(ids), BATCH_ARTICLES):
        yield ids[start : start + BATCH_ARTICLES]
