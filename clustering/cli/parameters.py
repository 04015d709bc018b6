"""Values that options take: moments and spans of time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_SPAN = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Span(click.ParamType[timedelta]):
    """A span of time such as `30m`, `1h` or `7d`."""

    name = "span"

    def convert(
        self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Return the span.

        Raises:
            click.BadParameter: it is none, or it is zero.
        """
        if isinstance(value, timedelta):
            return value
        match = _SPAN.fullmatch(value)
        if match is None or int(match[1]) == 0:
            self.fail(f"{value!r} is no span of time; write 30m, 1h or 7d", param, ctx)
        return timedelta(**{_UNITS[match[2]]: int(match[1])})


class Moment(click.ParamType[datetime]):
    """A moment in ISO 8601 (UTC where it names no zone), or a span before now such as `24h`."""

    name = "time"

    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the moment in UTC.

        Raises:
            click.BadParameter: it is no moment.
        """
        if isinstance(value, datetime):
            return value
        if _SPAN.fullmatch(value):
            return datetime.now(UTC) - Span().convert(value, param, ctx)
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no time; write 2026-03-10T09:00Z or 24h", param, ctx)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
