"""Dates as sources write them, to UTC; and which of them are believed."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import time

#: No news feed is older than the web; dates before it are empty fields in disguise (the epoch).
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DateBounds:
    """The dates that are believed, both ends included.

    Attributes:
        earliest: timezone-aware.
        latest: timezone-aware.
    """

    earliest: datetime
    latest: datetime

    @classmethod
    def around(cls, now: datetime) -> DateBounds:
        """Return the default bounds: from 1990 to one day after `now` (clocks and zones err)."""
        return cls(EARLIEST, now + timedelta(days=1))

    def __contains__(self, moment: datetime) -> bool:
        """Tell whether `moment` lies within."""
        return self.earliest <= moment <= self.latest


def parse_iso(text: str) -> datetime:
    """Read an ISO 8601 date or time; without a zone it is UTC, without a time it is midnight.

    Raises:
        ValueError: if `text` is no ISO 8601 date, or its UTC time is no date at all.
    """
    text = text.strip()
    if text.endswith("z"):
        text = text[:-1] + "Z"
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(str(error)) from error


def parse_loosely(text: str) -> datetime | None:
    """Read an ISO 8601 date, or one as in mail (RFC 5322); None if it is neither."""
    for parse in (parse_iso, _parse_mail):
        try:
            return parse(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _parse_mail(text: str) -> datetime:
    """Read `Fri, 31 May 2019 12:17:58 -0700`; without a zone it is UTC."""
    moment = parsedate_to_datetime(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def from_struct(moment: time.struct_time | None) -> datetime | None:
    """Turn a UTC `struct_time`, as feedparser gives it, to a time; None if it is no date."""
    if moment is None:
        return None
    try:
        return datetime.fromtimestamp(calendar.timegm(moment), UTC)
    except (OverflowError, ValueError, OSError):
        return None
