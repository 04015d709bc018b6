"""The engine that programs and the command line use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, BinaryIO

from clustering.embedding.space import use_space
from clustering.engine.clustering import DEFAULT_STEP, encode, place
from clustering.engine.duplicates import Duplicates
from clustering.engine.editing import Editing
from clustering.engine.encoding import Encoding
from clustering.engine.events import Events
from clustering.engine.exporting import Exporting
from clustering.engine.feeds import Feeds
from clustering.engine.intake import take_in
from clustering.engine.pruning import Pruning
from clustering.engine.reading import Reading
from clustering.engine.replay import Player, moment
from clustering.engine.spaces import Spaces
from clustering.engine.tasking import Tasking
from clustering.records import Article, Feed, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from clustering.embedding.encoder import Encoder
    from clustering.engine.runs import Run, RunReport
    from clustering.ingest import FetchLimits

_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


class Engine(
    Reading, Events, Encoding, Spaces, Pruning, Feeds, Duplicates, Editing, Tasking, Exporting
):
    """Turns articles into stories in one database. Made by `Engine.open`; use it in a `with` block."""

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
        """Encode what is new, run the three passes over it, and link stories into events.

        Args:
            as_of: articles of later event times wait; None means all.
            step: length of a slice of time that is placed at once.

        Raises:
            RunLocked: another run works on the database.
            ModelError: the model cannot be loaded, or the database is encoded with another.

        A model that thresholds were never measured for gets some from the background of its space;
        below 500 articles it has none, and articles wait. Both warn.
            CalibrationError: the file of thresholds is not valid.
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
        self,
        articles: Iterable[Article | Refusal],
        *,
        every: timedelta = DEFAULT_STEP,
        encoder: Encoder | None = None,
        event_links: Sequence[float] = (),
    ) -> RunReport:
        """Play dated articles as if they arrived step by step, each seen when it was published.

        Args:
            articles: each with `published_at`; refusals among them are reported.
            every: length of a step, which is placed at once.
            encoder: encodes in the model's place; None takes the model's own.
            event_links: thresholds at which events are linked too, for `events_at`; only in a
                database that was not played with the same ones before.

        Raises:
            RunLocked: another run works on the database.
        """
        with self._working("replay") as run:
            known = list(articles)
            take_in(run, (item for item in known if isinstance(item, Refusal)), moment)
            use_space(run.session, self.model.space())
            trials = self._make_trials(event_links)
            player = Player(
                run, self.model, self.thresholds, every, self._progress, encoder, trials
            )
            player.play(item for item in known if isinstance(item, Article))
        return run.report()

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
        encode(run, self.model, self.thresholds.windows, until, self._progress)
        place(run, self.thresholds, until, step, self._progress)
