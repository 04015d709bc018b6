"""Writing stories to files."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clustering.engine.opened import Opened
from clustering.export import write_rows
from clustering.stories.reading import Story, pages_of_stories
from clustering.tasks.leases import scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from clustering.store.session import Session


class Exporting(Opened):
    """The part of the engine that writes files."""

    def export(
        self,
        path: Path,
        *,
        file_format: str = "jsonl",
        since: datetime | None = None,
        until: datetime | None = None,
        min_size: int = 2,
    ) -> int:
        """Write stories with their articles, links and scores, the oldest first, as of one moment.

        A file appears whole or not at all. Memory does not grow with the number of stories.

        Args:
            path: file to write, over what is there.
            file_format: `jsonl`, or `parquet` (extra `export`).
            since: stories whose latest article is older are left out.
            until: stories whose first article is younger are left out.
            min_size: least number of articles, duplicates not counted.

        Returns:
            number of stories.

        Raises:
            ExportError: the file cannot be written, the format is unknown or its package missing.
        """
        session = self._database.session
        with session.transaction():
            session.execute("read_one_state")
            pages = pages_of_stories(session, since=since, until=until, min_size=min_size)
            return write_rows(_rows(session, pages), path, file_format)


def _rows(session: Session, pages: Iterator[list[Story]]) -> Iterator[Mapping[str, Any]]:
    for page in pages:
        known = scores(session, [story.id for story in page])
        for story in page:
            yield _row(story) | {"scores": known[story.id]}


def _row(story: Story) -> dict[str, Any]:
    row = {name: getattr(story, name) for name in Story.__slots__ if name != "centroid"}
    for name in ("articles", "absorbed"):
        row[name] = [asdict(part) for part in row[name]]
    return row
