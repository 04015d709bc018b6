"""Events of other thresholds beside those of a database: what each would have made of the same stories.

Whether a story joins an event depends on the events of that hour, so that one threshold's events say
nothing of another's. Each trial has tables of its own, in a schema that comes before the others while
it is linked. For replays in a scratch database, where the whole curve costs one replay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clustering.events.linker import Linker

if TYPE_CHECKING:
    from clustering.events.linker import EventRules
    from clustering.store.session import Session


@dataclass(frozen=True, slots=True)
class Trial:
    """Events of one threshold, in a schema of their own.

    Attributes:
        session: bound to the space, outside a transaction.
        link: the threshold, in place of the calibration's.
    """

    session: Session
    link: float

    def make(self) -> None:
        """Make empty tables, once in a database."""
        with self.session.transaction():
            self.session.define("make_trial", trial=self._schema)
            self._look_there_first()
            self.session.execute("begin_event_progress")

    def run(self, rules: EventRules, run_id: int) -> None:
        """Bring these events up to date, as `Linker.run` does.

        Args:
            rules: with the threshold of this trial.
            run_id: run that the decisions are recorded under.
        """
        with self.session.transaction():
            self._look_there_first()
            Linker(self.session, rules, run_id).run()

    def events(self) -> dict[int, int]:
        """Return the event of each story that is in one, both by id."""
        with self.session.transaction():
            self._look_there_first()
            rows = self.session.rows("events_of_stories")
        return {row.story_id: row.event_id for row in rows}

    @property
    def _schema(self) -> str:
        return f"events_at_{self.link:g}"

    def _look_there_first(self) -> None:
        """Find tables in this trial's schema before any other, until the transaction ends."""
        self.session.execute("look_first_in", trial=self._schema)
