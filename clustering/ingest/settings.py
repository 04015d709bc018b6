"""Settings of feeds: what an operator says of a feed that the feed itself does not."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from clustering.errors import InvalidInput
from clustering.records import FeedSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clustering.store.session import Session

KINDS = ("normal", "live")
LONGEST_WINDOW = timedelta(days=366)
_PARAMETER_NAME = re.compile(r"[^\s&=#?;]{1,200}")


def load_settings(session: Session) -> list[FeedSettings]:
    """Return the settings of all feeds, by address."""
    return [_settings(row) for row in session.rows("feed_settings")]


def find_settings(session: Session, address: str) -> FeedSettings | None:
    """Return the settings of one feed, None where no feed has that address."""
    rows = session.rows("feed_settings_of", address=address)
    return _settings(rows[0]) if rows else None


def special_feeds(session: Session) -> dict[str, FeedSettings]:
    """Return the feeds, by address, whose entries are told apart in another way than usual."""
    found = [_settings(row) for row in session.rows("special_feeds")]
    return {settings.address: settings for settings in found}


def store_settings(session: Session, settings: FeedSettings) -> None:
    """Write the settings of a feed that is there."""
    session.execute(
        "set_feed",
        address=settings.address,
        kind=settings.kind,
        duplicate_window=settings.duplicate_window,
        identity_params=list(settings.identity_params),
    )


def changed_settings(
    before: FeedSettings,
    *,
    identity_params: Iterable[str] | None = None,
    duplicate_window: timedelta | None = None,
    kind: str | None = None,
) -> FeedSettings:
    """Return settings with those exchanged that are given.

    Raises:
        InvalidInput: a value makes no sense.
    """
    if kind is not None:
        if kind not in KINDS:
            raise InvalidInput(f"a feed is normal or live, not {kind!r}")
        before = replace(before, kind=kind)
    if duplicate_window is not None:
        if not timedelta() < duplicate_window <= LONGEST_WINDOW:
            raise InvalidInput(
                f"a duplicate window is from 1 s to {LONGEST_WINDOW.days} days, not {duplicate_window}"
            )
        before = replace(before, duplicate_window=duplicate_window)
    if identity_params is not None:
        before = replace(before, identity_params=_names(identity_params))
    return before


def _names(names: Iterable[str]) -> tuple[str, ...]:
    found = tuple(sorted(set(names)))
    for name in found:
        if not _PARAMETER_NAME.fullmatch(name):
            raise InvalidInput(
                f"{name!r} is no name of a query parameter; for …?id=7 it is id, without = and &"
            )
    return found


def _settings(row: Any) -> FeedSettings:  # noqa: ANN401 - a named tuple of the columns
    """Make a record of a row; the database has lists where the record has tuples."""
    return FeedSettings(**row._asdict() | {"identity_params": tuple(row.identity_params)})
