"""From stored articles to stories: encode what is new, then the passes, one slice of time after another."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clustering.embedding.backlog import Backlog, count_due
from clustering.stories.passes import Passes, count_pending, next_slice
from clustering.stories.refresh import refresh

if TYPE_CHECKING:
    from datetime import datetime

    from clustering.engine.model import Encodes
    from clustering.engine.progress import Progress
    from clustering.engine.runs import Run
    from clustering.stories.calibration import Calibration

DEFAULT_STEP = timedelta(hours=1)


def encode(
    run: Run, model: Encodes, calibration: Calibration, as_of: datetime, progress: Progress
) -> None:
    """Encode the articles that wait for it, with an event time up to `as_of`."""
    due = count_due(run.session, as_of, run.now)
    if not due:
        return
    backlog = Backlog(
        session=run.session,
        encode=model.encode,
        centre=model.alignment.centre,
        lede_chars=model.card.lede_chars,
        live_span=_live_span(calibration),
        realigned=lambda since: _refresh_live(run, calibration, since),
    )
    with run.timed("encode"), progress.stage("encode", due) as advance:
        run.counts["encoded"] += backlog.clear(as_of, run.now, advance)


def place(
    run: Run, calibration: Calibration, as_of: datetime, step: timedelta, progress: Progress
) -> None:
    """Run the passes over every slice that waits, the earliest first."""
    pending = count_pending(run.session, as_of)
    if not pending:
        return
    passes = Passes(run.session, calibration, run.id, run.timed)
    with progress.stage("cluster", pending) as advance:
        while batch := next_slice(run.session, as_of, step):
            run.counts.update(passes.run(batch))
            advance(len(batch.times))


def _live_span(calibration: Calibration) -> timedelta:
    """Return how far back the members of a story that may still change can lie."""
    return timedelta(hours=calibration.story_age_hours + 2 * calibration.story_gap_hours)


def _refresh_live(run: Run, calibration: Calibration, since: datetime) -> None:
    live = [row.story_id for row in run.session.rows("live_stories", since=since)]
    refresh(run.session, live, calibration)
