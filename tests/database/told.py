"""Stories written straight into the database, without vectors, for what comes after them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from clustering.store.session import Session

START = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class Told:
    """A database whose stories are rows alone."""

    session: Session

    def sql(self, text: str, *values: object) -> list:
        cursor = self.session.connection.execute(text, values or None)
        return cursor.fetchall() if cursor.description else []

    def one(self, text: str, *values: object):
        return self.sql(text, *values)[0][0]

    def run_id(self) -> int:
        return self.one(
            "INSERT INTO run (command, started_at, settings) VALUES ('test', now(), '{}') RETURNING id"
        )

    def article(self, title: str = "Title") -> int:
        self.sql("INSERT INTO feed (address) VALUES ('feed') ON CONFLICT DO NOTHING")
        return self.one(
            "INSERT INTO article (feed_id, guid, title, body, language, language_confidence, event_time, "
            "first_seen, entry_hash, run_id) SELECT f.id, %s, %s, '', 'en', 1, now(), now(), %s, %s "
            "FROM feed f WHERE f.address = 'feed' RETURNING id",
            str(uuid4()),
            title,
            uuid4(),
            self.run_id(),
        )

    def story(self, hours: float = 0, size: int = 2, languages: tuple[str, ...] = ("en",)) -> int:
        time = START + timedelta(hours=hours)
        return self.one(
            "INSERT INTO story (first_time, latest_time, size, languages, sources, headline_id, run_id) "
            "VALUES (%s, %s, %s, %s, 1, %s, %s) RETURNING id",
            time,
            time,
            size,
            sorted(languages),
            self.article(),
            self.run_id(),
        )

    def change(self, story: int, **columns: object) -> None:
        marks = ", ".join(f"{name} = %s" for name in columns)
        self.sql(f"UPDATE story SET {marks} WHERE id = %s", *columns.values(), story)

    def merge(self, absorbed: int, survivor: int) -> None:
        """Let one story become part of another, as pass 3 redirects; the survivor's row stays as it is."""
        self.sql(
            "UPDATE story SET merged_into = %s WHERE id = %s OR merged_into = %s",
            survivor,
            absorbed,
            absorbed,
        )

    def pass_time(self, span: timedelta) -> None:
        """Let the server's clock go on, as far as tasks know."""
        self.sql("UPDATE task SET due_at = due_at - %s", span)

    def rows(self) -> dict:
        """Every row that may be seen, with the transaction that wrote it."""
        return {
            table: self.sql(f"SELECT xmin::text, t::text FROM {table} t ORDER BY 1, 2")
            for table in ("task", "story_score", "story", "run")
        }
