"""The engine that programs and the command line use."""

from __future__ import annotations

import warnings
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO

from clustering.embedding.space import bind_active_space, use_space
from clustering.engine.clustering import DEFAULT_STEP, encode, place
from clustering.engine.intake import take_in
from clustering.engine.model import Model
from clustering.engine.progress import Progress, Silent
from clustering.engine.replay import Player, moment
from clustering.engine.runs import Run, RunReport, run_lock
from clustering.errors import StoriesError
from clustering.records import Article, Feed, Refusal
from clustering.settings import Settings
from clustering.store.database import Database
from clustering.store.migrations import schema_version
from clustering.stories.calibration import Calibration, load_calibration
from clustering.stories.reading import (
    Story,
    StorySummary,
    find_story,
    list_stories,
    whole_stories,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from clustering.ingest import FetchLimits

_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


class Engine:
    """Turns articles into stories in one database. Made by `Engine.open`; use it in a `with` block.

    Args:
        database: a migrated database.
        settings: model and calibration.
        progress: shows how far long work is.
    """

    def __init__(self, database: Database, settings: Settings, progress: Progress) -> None:
        self.settings = settings
        self._database = database
        self._progress = progress
        bind_active_space(database.session)

    @classmethod
    def open(  # noqa: PLR0913 - one keyword for each setting
        cls,
        database: str | None = None,
        *,
        model: str | None = None,
        home: Path | None = None,
        calibration: Path | None = None,
        settings: Settings | None = None,
        progress: Progress | None = None,
    ) -> Engine:
        """Open a database, made or migrated where needed.

        Args:
            database: DSN of a PostgreSQL 15 or newer with pgvector 0.8.0 or newer, or a plain
                name for a database of the embedded server. None takes `STORIES_DATABASE`, and
                without it the embedded server's usual database.
            model: name of a card, hub name, or path of a model folder.
            home: folder of the embedded server and of models; None takes `STORIES_HOME` or the
                user's data folder.
            calibration: file of thresholds; None takes the model's own.
            settings: what the other arguments do not name.
            progress: shows how far long work is; None shows nothing.

        Raises:
            DatabaseError: the server cannot be started, reached or used.
        """
        given = {"database": database, "model": model, "home": home, "calibration": calibration}
        named = {name: value for name, value in given.items() if value is not None}
        chosen = replace(settings or Settings(), **named)  # type: ignore[arg-type] # each its own
        opened = Database(chosen.database, chosen.home, warnings.warn)
        return cls(opened, chosen, progress or Silent())

    def __enter__(self) -> Self:
        """Return the engine itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the engine."""
        self.close()

    def close(self) -> None:
        """Close the connection; the last user of the embedded server stops it."""
        self._database.close()

    @property
    def dsn(self) -> str:
        """Connection string of the database."""
        return self._database.dsn

    @property
    def schema_version(self) -> int:
        """Number of the last migration in the database."""
        return schema_version(self._database.session)

    @cached_property
    def model(self) -> Model:
        """The model named in the settings; its weights are loaded when something is encoded."""
        return Model(self.settings.model, self.settings.home)

    @cached_property
    def calibration(self) -> Calibration:
        """The thresholds in force."""
        return load_calibration(self.model.card.name, self.settings.calibration)

    def ingest(
        self,
        articles: Iterable[Article],
        *,
        first_seen: Callable[[Article], datetime] | None = None,
    ) -> RunReport:
        """Store articles and fold duplicates; nothing is encoded yet.

        Args:
            articles: any number; stored in batches, each in one transaction.
            first_seen: tells when an article was first seen; None means now.

        Raises:
            RunLocked: another run works on the database.
        """
        with self._working("ingest") as run:
            self._take_in(run, articles, first_seen)
        return run.report()

    def ingest_sources(
        self,
        sources: Sequence[str],
        *,
        stdin: BinaryIO | None = None,
        limits: FetchLimits | None = None,
    ) -> RunReport:
        """Read files, feeds and addresses, and store their articles.

        Args:
            sources: `.jsonl`, `.jsonl.gz`, feed file, OPML, http(s) address, or `-` for JSON Lines.
            stdin: what `-` reads.
            limits: of size, time and redirects when fetching.

        Raises:
            RunLocked: another run works on the database.
        """
        with self._working("ingest") as run:
            self._take_in(run, self._read(sources, stdin, limits), None)
        return run.report()

    def cluster(
        self, *, as_of: datetime | None = None, step: timedelta = DEFAULT_STEP
    ) -> RunReport:
        """Encode what is new and run the three passes over it.

        Args:
            as_of: articles of later event times wait; None means all.
            step: length of a slice of time that is placed at once.

        Raises:
            RunLocked: another run works on the database.
            ModelError: the model cannot be loaded, or the database is encoded with another.
            CalibrationError: there are no thresholds for the model.
        """
        with self._working("cluster") as run:
            self._cluster(run, as_of, step)
        return run.report()

    def run(
        self,
        sources: Sequence[str] = (),
        *,
        stdin: BinaryIO | None = None,
        limits: FetchLimits | None = None,
    ) -> RunReport:
        """Do the hourly job: read the sources, then encode and cluster what is new.

        Args and errors are those of `ingest_sources` and `cluster`.
        """
        with self._working("run") as run:
            if sources:
                self._take_in(run, self._read(sources, stdin, limits), None)
            self._cluster(run, None, DEFAULT_STEP)
        return run.report()

    def play(
        self, articles: Iterable[Article | Refusal], *, every: timedelta = DEFAULT_STEP
    ) -> RunReport:
        """Play dated articles as if they arrived step by step, each seen when it was published.

        Args:
            articles: each with `published_at`; refusals among them are reported.
            every: length of a step, which is placed at once.

        Raises:
            RunLocked: another run works on the database.
        """
        with self._working("replay") as run:
            known = list(articles)
            take_in(run, (item for item in known if isinstance(item, Refusal)), moment)
            use_space(run.session, self.model.space())
            player = Player(run, self.model, self.calibration, every, self._progress)
            player.play(item for item in known if isinstance(item, Article))
        return run.report()

    def stories(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        min_size: int = 2,
        limit: int | None = None,
    ) -> Iterator[Story]:
        """Yield stories alive between two times, the latest first, with their articles.

        Args:
            since: stories whose latest article is older are left out.
            until: stories whose first article is younger are left out.
            min_size: least number of articles, duplicates not counted.
            limit: at most this many; None for all.
        """
        found = self.summaries(since=since, until=until, min_size=min_size, limit=limit)
        yield from whole_stories(self._database.session, found)

    def summaries(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        min_size: int = 2,
        limit: int | None = None,
    ) -> list[StorySummary]:
        """Return stories as `stories` does, without their articles."""
        session = self._database.session
        return list_stories(session, since=since, until=until, min_size=min_size, most=limit)

    def story(self, story_id: int) -> Story:
        """Return one story; the id of an absorbed one leads to its survivor.

        Raises:
            NotFoundError: no story ever had that id.
        """
        session = self._database.session
        (story,) = whole_stories(session, [find_story(session, story_id)])
        return story

    def stats(self, *, days: int = 7) -> dict[str, Any]:
        """Return totals, and placements and links by day with their scores.

        Args:
            days: how far back from the latest article.
        """
        session, span = self._database.session, timedelta(days=days)
        (totals,) = session.rows("totals")
        return {
            "totals": totals._asdict(),
            "placements": [row._asdict() for row in session.rows("placements_by_day", span=span)],
            "links": [row._asdict() for row in session.rows("links_by_day", span=span)],
            "runs": [row._asdict() for row in session.rows("latest_runs", most=10)],
        }

    def assignments(self) -> dict[tuple[str, str], int | None]:
        """Return the story id of every article by its source and the source's own id.

        A duplicate has the story of its canonical article; None means no story.
        """
        rows = self._database.session.rows("assignments")
        return {(row.source, row.guid): row.story_id for row in rows}

    def _read(
        self, sources: Sequence[str], stdin: BinaryIO | None, limits: FetchLimits | None
    ) -> Iterator[Article | Feed | Refusal]:
        import sys  # noqa: PLC0415 - beside its only use

        from clustering.ingest import FetchLimits, read_sources  # noqa: PLC0415 - readers load httpx

        feeds = self._database.session.records(Feed, "feed_validators")
        yield from read_sources(
            sources,
            stdin=stdin or sys.stdin.buffer,
            validators={feed.address: feed for feed in feeds},
            limits=limits or FetchLimits(),
            now=datetime.now(UTC),
        )

    def _take_in(
        self,
        run: Run,
        items: Iterable[Article | Feed | Refusal],
        first_seen: Callable[[Article], datetime] | None,
    ) -> None:
        now = datetime.now(UTC)
        with run.timed("ingest"):
            take_in(run, items, first_seen or (lambda _: now))

    def _cluster(self, run: Run, as_of: datetime | None, step: timedelta) -> None:
        until = as_of or _END_OF_TIME
        use_space(run.session, self.model.space())
        encode(run, self.model, self.calibration, until, self._progress)
        place(run, self.calibration, until, step, self._progress)

    @contextmanager
    def _working(self, command: str) -> Iterator[Run]:
        """Hold the run lock; close the run's row however the work ends."""
        settings = {"model": self.settings.model}
        if command != "ingest":
            settings |= {"calibration": asdict(self.calibration)}  # type: ignore[dict-item]
        with run_lock(self.dsn):
            run = Run(self._database.session, command, settings)
            try:
                yield run
            except BaseException:
                with suppress(StoriesError):
                    run.finish("failed")
                raise
            run.finish("done")
