"""From stored articles to stories: encode what is new, then the passes, one slice of time after another."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clustering.embedding.backlog import Backlog, count_due
from clustering.embedding.corpus import space_centre
from clustering.engine.thresholds import live_span, refresh_live
from clustering.events.linker import EventRules, Linker
from clustering.stories.passes import Passes, count_pending, next_slice

if TYPE_CHECKING:
    from datetime import datetime

    from clustering.engine.model import Encodes
    from clustering.engine.progress import Progress
    from clustering.engine.runs import Run
    from clustering.engine.thresholds import Thresholds
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
        centre=space_centre(run.session, model.alignment),
        lede_chars=model.card.lede_chars,
        live_span=live_span(calibration),
        realigned=lambda since: refresh_live(run.session, calibration, since),
    )
    with run.timed("encode"), progress.stage("encode", due) as advance:
        run.counts["encoded"] += backlog.clear(as_of, run.now, advance)


def place(
    run: Run, thresholds: Thresholds, as_of: datetime, step: timedelta, progress: Progress
) -> None:
    """Run the passes over every slice that waits, the earliest first, and link stories into events.

    Without thresholds all wait on.
    """
    pending = count_pending(run.session, as_of)
    calibration = thresholds.settle() if pending else None
    if calibration is None:
        return
    passes = Passes(run.session, calibration, run.id, run.timed)
    events = Linker(run.session, event_rules(calibration), run.id)
    with progress.stage("cluster", pending) as advance:
        _link(run, events)  # what a killed run left
        while batch := next_slice(run.session, as_of, step):
            run.counts.update(passes.run(batch))
            _link(run, events)
            advance(len(batch.times))


def event_rules(calibration: Calibration) -> EventRules:
    """Return the part of a calibration that events go by."""
    return EventRules(
        link=calibration.event_link,
        gap=timedelta(hours=calibration.event_gap_hours),
        time_penalty=calibration.event_time_penalty,
        neighbours=calibration.neighbours,
    )


def _link(run: Run, events: Linker) -> None:
    with run.timed("events"):
        run.counts.update(events.run())
