"""Which thresholds are in force: the model's own, those of a file, or those that its background gives."""

from __future__ import annotations

import warnings
from datetime import timedelta
from functools import cached_property
from importlib.resources import files
from typing import TYPE_CHECKING

from clustering.embedding.align import UNALIGNED
from clustering.embedding.corpus import adopt
from clustering.embedding.domain import load_domain_mean
from clustering.embedding.space import active_space
from clustering.errors import CalibrationError
from clustering.stories.background import (
    LEAST_ARTICLES,
    carried_over,
    load_background,
    measure_space,
    reference_background,
    reference_calibration,
    store_background,
)
from clustering.stories.calibration import Calibration, load_calibration
from clustering.stories.refresh import refresh

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from clustering.embedding.align import Alignment
    from clustering.embedding.cards import ModelCard
    from clustering.engine.model import Model
    from clustering.store.session import Session


class Thresholds:
    """The thresholds of a model in a database.

    A model that thresholds were never measured for gets the default model's at the same standard
    scores of its own background. That takes 500 encoded articles: before, articles are encoded and
    wait, and no story is made. It is measured again when the corpus has doubled, until the
    database stops counting at 20,000 articles.

    Each of the two is warned of once.

    Args:
        session: any session on the database.
        model: the model.
        named: a calibration file that goes before everything else.
    """

    def __init__(self, session: Session, model: Model, named: Path | None) -> None:
        self._session = session
        self._model = model
        self._named = named
        self._warned: set[str] = set()

    @cached_property
    def measured(self) -> Calibration | None:
        """The thresholds that somebody measured for the model, or None."""
        name = self._model.card.name
        shipped = files("clustering.models").joinpath(f"{name.replace('/', '--')}.calibration.toml")
        if self._named is None and not shipped.is_file():
            return None
        return load_calibration(name, self._named)

    @cached_property
    def windows(self) -> Calibration:
        """A calibration whose hours and sizes hold for the model, whether or not its scores do."""
        return self.measured or reference_calibration()

    @property
    def live_span(self) -> timedelta:
        """How far back the members of a story that may still change can lie."""
        return live_span(self.windows)

    def known(self) -> Calibration | None:
        """Return the thresholds in force, or None where there are not yet enough articles."""
        space = active_space(self._session)
        if self.measured or space is None:
            return self.measured
        background = load_background(self._session, space.name)
        if background is None:
            return None
        return carried_over(reference_calibration(), reference_background(), background)

    def require(self) -> Calibration:
        """Return the thresholds in force.

        Raises:
            CalibrationError: there are none, and too few articles to find them.
        """
        found = self.known()
        if found is None:
            raise CalibrationError(_none_yet(self._model.card, 0))
        return found

    def settle(self) -> Calibration | None:
        """Return the thresholds for the next articles, measured anew where that is due.

        Warns where the model has none of its own. None where there are too few articles.
        """
        if self.measured:
            return self.measured
        articles = int(load_domain_mean(self._session).articles)
        if articles < LEAST_ARTICLES:
            self._warn_once("none yet", _none_yet(self._model.card, articles))
            return None
        before = load_background(self._session, self._session.part("space"))
        if before is None or articles >= 2 * before.articles:
            with self._session.transaction():
                self._measure(articles, first=before is None)
        self._warn_once("carried over", _carried(self._model.card))
        return self.known()

    def _warn_once(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            warnings.warn(text, stacklevel=4)

    def _measure(self, articles: int, *, first: bool) -> None:
        alignment = self._model.alignment
        if first and alignment.version == UNALIGNED and not _has_basis(self._session):
            lede_chars = self._model.card.lede_chars
            adopt_corpus(self._session, alignment, lede_chars, self.windows)
        background = measure_space(self._session, articles)
        store_background(self._session, self._session.part("space"), background)


def live_span(calibration: Calibration) -> timedelta:
    """Return how far back the members of a story that may still change can lie."""
    return timedelta(hours=calibration.story_age_hours + 2 * calibration.story_gap_hours)


def adopt_corpus(
    session: Session, alignment: Alignment, lede_chars: int, calibration: Calibration
) -> None:
    """Learn from the corpus, align everything that can still change anew, and refresh its stories.

    Inside a transaction.
    """
    since = session.value("live_since", span=live_span(calibration))
    if since is not None:
        adopt(session, alignment, lede_chars, since)
        refresh_live(session, calibration, since)


def refresh_live(session: Session, calibration: Calibration, since: datetime) -> None:
    """Recompute the centroids of the stories that went on after some time."""
    live = [row.story_id for row in session.rows("live_stories", since=since)]
    refresh(session, live, calibration)


def _has_basis(session: Session) -> bool:
    return bool(session.value("language_basis", space=session.part("space")))


def _none_yet(card: ModelCard, articles: int) -> str:
    return (
        f"no thresholds were measured for {card.name}, and finding them takes {LEAST_ARTICLES} encoded "
        f"articles, of which there are {articles}; articles wait until then, or name thresholds with "
        "--calibration"
    )


def _carried(card: ModelCard) -> str:
    return (
        f"no thresholds were measured for {card.name}: those of the default model are used at the "
        "same standard scores of this database's own background; `stories tune` measures better ones"
    )
