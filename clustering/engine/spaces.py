"""Spaces of a database: list them, fit one on the user's corpus, fill one, let it serve, drop it."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clustering.embedding.corpus import FIT_ARTICLES, adopt, learn, space_centre
from clustering.embedding.filling import BEGINNING_OF_TIME, Fill, like_spaces
from clustering.embedding.space import (
    Space,
    active_space,
    all_spaces,
    bind_active_space,
    bind_space,
    drop_space,
    find_space,
    make_space,
    space_name,
)
from clustering.engine.model import Model
from clustering.engine.opened import Opened
from clustering.engine.runs import space_lock
from clustering.engine.thresholds import Thresholds
from clustering.errors import ModelError, SpaceError
from clustering.store.session import Session
from clustering.stories.background import LEAST_ARTICLES
from clustering.stories.refresh import refresh

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from clustering.engine.runs import Run, RunReport
    from clustering.stories.calibration import Calibration

# A mean of fewer articles may be that of a topic (evidence: a day's topic is taken away with it).
LEAST_FIT_ARTICLES = 2000
_STORIES = 500
_LAST_ID = 2**62


@dataclass(frozen=True, slots=True)
class SpaceState:
    """A space and how full it is.

    Attributes:
        name: its name.
        model: the model that encodes it.
        revision: revision of the model's weights.
        dimension: length of a vector.
        alignment: version of language offsets and general mean.
        fit: version of a mean fitted on the user's corpus; empty where it is learned as articles come.
        active: whether it serves.
        articles: how many articles it has.
        live_wanted: how many articles it needs to serve: those that can still be matched, and those
            of stories that still go on.
        live_missing: how many of these it lacks.
        mean_version: number of the domain mean in force.
        mean_articles: how many articles that mean's running successor stands for.
        language_directions: how many directions are taken out in place of language offsets.
        background: mean and standard deviation of the cosines of unrelated articles, where measured.
        size_bytes: what its tables and indexes take.
        created_at: when it was made.
    """

    name: str
    model: str
    revision: str
    dimension: int
    alignment: str
    fit: str
    active: bool
    articles: int
    live_wanted: int
    live_missing: int
    mean_version: int
    mean_articles: int
    language_directions: int
    background: tuple[float, float] | None
    size_bytes: int
    created_at: datetime


class Spaces(Opened):
    """The part of the engine that looks after spaces."""

    def spaces(self) -> list[SpaceState]:
        """Return every space of the database, the oldest first."""
        with closing(Session(self.dsn)) as session:
            return [self._state(session, space) for space in all_spaces(session)]

    def fit_space(self, name: str | None = None) -> SpaceState:
        """Learn the domain mean from a space's articles and make a new space with it.

        The mean stays as it is from then on. For a model without language offsets the directions
        that tell the corpus' languages apart are learned too. Nothing is encoded: the new space is
        filled from the raw vectors. It does not serve before `activate_space`. A call that was
        killed is resumed by `backfill_space`.

        Args:
            name: space to learn from; None for the active one.

        Returns:
            The new space.

        Raises:
            SpaceError: the space has fewer than 2,000 articles.
            NotFoundError: there is no such space.
            RunLocked: another process fills the new space.
        """
        with closing(Session(self.dsn)) as session:
            source = find_space(session, name) if name else self._active(session)
            bind_space(session, source)
            articles = int(session.value("count_vectors"))
            if articles < LEAST_FIT_ARTICLES:
                raise SpaceError(
                    f"the space {source.name} has {articles} articles; a mean that holds for a corpus "
                    f"takes {LEAST_FIT_ARTICLES}"
                )
            model = self._model_of(source)
            learned = learn(session, model.alignment, model.card.lede_chars, FIT_ARTICLES)
            fit = learned.version(source.alignment)
            fitted = replace(source, name=space_name(source.model, f"fit_{fit}"), fit=fit)
            make_space(session, fitted, active=False, learned=learned)
        return self.backfill_space(fitted.name)

    def backfill_space(self, name: str, *, since: datetime | None = None) -> SpaceState:
        """Fill a space with the articles that were encoded in another, the latest first.

        Runs go on beside it with the active space. Vectors are written as they come; killed at any
        moment and called again, it goes on where it stopped.

        Args:
            name: a space, or a model (card, hub name, folder), whose space is made where missing.
            since: earlier articles are left out; None fills all.

        Returns:
            The space.

        Raises:
            SpaceError: nothing is encoded yet, or the space's model is no longer what it was.
            ModelError: there is no space or model of that name, or the model cannot be loaded.
            RunLocked: another process fills the space.
        """
        with closing(Session(self.dsn)) as session:
            space = self._named(session, name)
            model = self._model_of(space)
            bind_space(session, space)
            with space_lock(self.dsn, space.name):
                self._fill(session, model, since or BEGINNING_OF_TIME)
                if space == active_space(session):
                    self._old_centroids(session, self._thresholds(session, model).windows)
            return self._state(session, space)

    def activate_space(self, name: str) -> RunReport:
        """Let a space serve from now on. Stories keep their ids; their centroids are those of the space.

        Raises:
            SpaceError: it serves already, lacks articles that can still be matched, or has no
                thresholds and too few articles to find them.
            NotFoundError: there is no such space.
            RunLocked: another run works on the database.
        """
        session = self._database.session
        space = find_space(session, name)
        model = self._model_of(space)
        with self._working("activate") as run:
            calibration = self._thresholds(session, model).windows
            with self._other_space(session):
                self._swap(run, space, model, calibration)
            self._old_centroids(session, calibration)
        for cached in ("model", "thresholds"):
            self.__dict__.pop(cached, None)
        return run.report()

    def drop_space(self, name: str) -> None:
        """Drop a space that does not serve, with all its vectors. Articles and stories stay.

        Raises:
            SpaceError: it is the active one.
            NotFoundError: there is no such space.
            RunLocked: another process fills it.
        """
        with space_lock(self.dsn, name), closing(Session(self.dsn)) as session:
            drop_space(session, find_space(session, name))

    def _fill(self, session: Session, model: Model, since: datetime) -> None:
        fill = Fill(
            session=session,
            encode=model.encode,
            centre=space_centre(session, model.alignment),
            like=like_spaces(session, all_spaces(session)),
            lede_chars=model.card.lede_chars,
        )
        (count,) = session.rows("count_missing", since=since)
        with self._progress.stage("backfill", count.missing) as advance:
            fill.run(since, advance)

    def _swap(self, run: Run, space: Space, model: Model, calibration: Calibration) -> None:
        """Let another space serve, in one transaction: everything or nothing of it happens."""
        session = run.session
        with run.timed("activate"), session.transaction():
            if space == active_space(session):
                raise SpaceError(f"{space.name} is the active space already")
            bind_space(session, space)
            since = self._require_full(session, space, model)
            run.id  # noqa: B018 - registers the run, as something changes from here on
            session.execute("deactivate_spaces")
            session.execute("activate_space", space=space.name)
            session.execute("drop_all_centroids")
            if since is not None:
                adopt(session, model.alignment, model.card.lede_chars, since)
                stories = [row.id for row in session.rows("stories_since", since=since)]
                refresh(session, stories, calibration)
                run.counts["stories"] = len(stories)

    def _require_full(self, session: Session, space: Space, model: Model) -> datetime | None:
        """Return from when on the space is full: since when articles and stories can still change."""
        thresholds = self._thresholds(session, model)
        articles = int(session.value("count_vectors"))
        if thresholds.measured is None and articles < LEAST_ARTICLES:
            raise SpaceError(
                f"no thresholds were measured for {space.model}, and finding them takes {LEAST_ARTICLES} "
                f"articles, of which {space.name} has {articles}; name thresholds with --calibration"
            )
        since: datetime | None = session.value("live_since", span=thresholds.live_span)
        if since is not None:
            (count,) = session.rows("count_missing", since=since)
            if count.missing:
                raise SpaceError(
                    f"{space.name} lacks {count.missing} of the {count.wanted} articles that can still "
                    f"be matched; fill it with `stories space backfill {space.name}`"
                )
        return since

    def _old_centroids(self, session: Session, calibration: Calibration) -> None:
        """Give stories that ended long ago their centroids, as far as the space has their articles."""
        before = _LAST_ID
        while rows := session.rows("stories_without_centroid", before=before, most=_STORIES):
            with session.transaction():
                refresh(session, [row.id for row in rows], calibration)
            before = rows[-1].id

    def _state(self, session: Session, space: Space) -> SpaceState:
        bind_space(session, space)
        (row,) = session.rows("space_state", space=space.name)
        since = session.value("live_since", span=self._live_span(session, space))
        (count,) = session.rows("count_missing", since=since or BEGINNING_OF_TIME)
        size = session.value(
            "space_bytes", article_table=space.article_table, story_table=space.story_table
        )
        measured = row.background_articles is not None
        return SpaceState(
            name=space.name,
            model=space.model,
            revision=space.revision,
            dimension=space.dimension,
            alignment=space.alignment,
            fit=space.fit,
            active=row.active,
            articles=int(session.value("count_vectors")),
            live_wanted=count.wanted,
            live_missing=count.missing,
            mean_version=row.mean_version,
            mean_articles=round(row.running_articles),
            language_directions=row.language_directions or 0,
            background=(row.background_mean, row.background_deviation) if measured else None,
            size_bytes=int(size),
            created_at=row.created_at,
        )

    def _live_span(self, session: Session, space: Space) -> timedelta:
        """Return the live span; of a model that is gone, such as a folder, that of the default."""
        try:
            return self._thresholds(session, Model(space.model, self.settings.home)).live_span
        except ModelError:
            return self._thresholds(session, Model(None, self.settings.home)).live_span

    def _thresholds(self, session: Session, model: Model) -> Thresholds:
        return Thresholds(session, model, self.settings.calibration)

    def _model_of(self, space: Space) -> Model:
        model = Model(space.model, self.settings.home)
        if not space.serves(model.space()):
            raise SpaceError(
                f"the space {space.name} was encoded with another version of {space.model}; fill a new "
                f"space with `stories space backfill {space.model}`"
            )
        return model

    def _named(self, session: Session, name: str) -> Space:
        """Return a space by its name, or the one of a model, made where it is missing."""
        spaces = all_spaces(session)
        found = next((space for space in spaces if space.name == name), None)
        if found:
            return found
        self._active(session)
        wanted = Model(name, self.settings.home).space()
        same = next((space for space in spaces if space.serves(wanted) and not space.fit), None)
        if same:
            return same
        make_space(session, wanted, active=False)
        return wanted

    def _active(self, session: Session) -> Space:
        active = active_space(session)
        if active is None:
            raise SpaceError(
                "nothing is encoded yet; `stories run SOURCE... --model NAME` begins with any model"
            )
        return active

    @contextmanager
    def _other_space(self, session: Session) -> Iterator[None]:
        """Let a block bind the session to another space; where it fails, the active one is bound again."""
        try:
            yield
        except BaseException:
            bind_active_space(session)
            raise
