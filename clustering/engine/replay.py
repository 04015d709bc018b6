"""Playing a dated corpus through the engine, as if its articles arrived hour by hour."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from clustering.engine.clustering import encode, event_rules, place
from clustering.engine.intake import identity, take_in
from clustering.engine.progress import Silent
from clustering.stories.passes import SLICE_ORIGIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime, timedelta

    from numpy.typing import NDArray

    from clustering.embedding.encoder import Encoder
    from clustering.engine.model import Model
    from clustering.engine.progress import Progress
    from clustering.engine.runs import Run
    from clustering.engine.thresholds import Thresholds
    from clustering.events.trials import Trial
    from clustering.records import Article

# Texts are encoded this many at a time, ahead of the hours that need them: batches of an hour's
# few articles would use a fraction of the machine.
_PREFETCH_ARTICLES = 4096


class Prefetched:
    """A model that encodes the texts of the coming hours in one go and hands them out as asked.

    Args:
        model: gives card and alignment.
        encoder: does the encoding; None takes the model's own, loaded when it is needed.
    """

    def __init__(self, model: Model, encoder: Encoder | None) -> None:
        self._model = model
        self._encoder = encoder
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self.card = model.card
        self.alignment = model.alignment

    def prefetch(self, articles: Sequence[Article]) -> None:
        """Encode the texts of n articles and forget those of earlier ones."""
        texts = list(dict.fromkeys(self._text(article.title, article.body) for article in articles))
        vectors = (self._encoder or self._model.encoder).encode(texts)
        self._vectors = dict(zip(texts, vectors, strict=True))

    def encode(self, titles: Sequence[str], ledes: Sequence[str]) -> NDArray[np.float32]:
        """Return raw unit vectors of shape (n, dimension), float32, as `Model.encode` does."""
        texts = [self._text(title, lede) for title, lede in zip(titles, ledes, strict=True)]
        # A live article waits for its hour, and by then its text may be one of an earlier block.
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            vectors = self._model.encoder.encode(missing)
            self._vectors |= dict(zip(missing, vectors, strict=True))
        return np.stack([self._vectors[text] for text in texts])

    def _text(self, title: str, body: str) -> str:
        return self.card.text(title, body[: self.card.lede_chars])


@dataclass(frozen=True, slots=True)
class Player:
    """Plays articles into a database.

    Attributes:
        run: run that everything is recorded under.
        model: encodes.
        thresholds: of the model.
        every: length of a step; what arrives within one is placed at once.
        progress: shows how far it is.
        encoder: encodes in the model's place, such as `Recalled`; None takes the model's own.
        trials: events of other thresholds, linked beside those of the calibration.
    """

    run: Run
    model: Model
    thresholds: Thresholds
    every: timedelta
    progress: Progress
    encoder: Encoder | None = None
    trials: Sequence[Trial] = ()

    def play(self, articles: Iterable[Article]) -> None:
        """Play articles in order of their `published_at`, which each must have.

        An article counts as first seen when it was published. Each step calls the engine just as
        the hourly job does, so that nothing is known before its time.
        """
        steps = in_steps(articles, self.every)
        model = Prefetched(self.model, self.encoder)
        with self.progress.stage("replay", sum(map(len, steps))) as advance:
            for block in in_blocks(steps, _PREFETCH_ARTICLES):
                with self.run.timed("encode"):
                    model.prefetch([article for step in block for article in step])
                for step in block:
                    self._step(step, model)
                    advance(len(step))

    def _step(self, arrived: Sequence[Article], model: Prefetched) -> None:
        with self.run.timed("ingest"):
            take_in(self.run, arrived, moment)
        until = self.run.now = moment(arrived[-1])
        encode(self.run, model, self.thresholds.windows, until, Silent())
        place(self.run, self.thresholds, until, self.every, Silent())
        self._try()

    def _try(self) -> None:
        calibration = self.thresholds.known() if self.trials else None
        if calibration is None:
            return
        with self.run.timed("trials"):
            for trial in self.trials:
                rules = replace(event_rules(calibration), link=trial.link)
                trial.run(rules, self.run.id)


def moment(article: Article) -> datetime:
    """Return when an article of a corpus was published.

    Raises:
        ValueError: it has no date; readers of a corpus refuse such rows.
    """
    if article.published_at is None:
        raise ValueError(f"{article.title!r} has no published_at")
    return article.published_at


def in_steps(articles: Iterable[Article], every: timedelta) -> list[list[Article]]:
    """Return articles in order of time, those of one step together; steps begin at `SLICE_ORIGIN`."""
    grouped = groupby(
        in_order(articles), key=lambda article: (moment(article) - SLICE_ORIGIN) // every
    )
    return [list(step) for _, step in grouped]


def in_order(articles: Iterable[Article]) -> list[Article]:
    """Return articles in order of time, those of one moment by source and id."""
    return sorted(articles, key=lambda article: (moment(article), *identity(article)))


def in_blocks(steps: Sequence[list[Article]], least: int) -> Iterator[list[list[Article]]]:
    """Yield runs of steps, each run of at least `least` articles but the last."""
    block: list[list[Article]] = []
    for step in steps:
        block.append(step)
        if sum(map(len, block)) >= least:
            yield block
            block = []
    if block:
        yield block
