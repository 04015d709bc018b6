from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustering.stories.near import SCANNED, searched

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 4, tzinfo=UTC)


def part(first: datetime, last: datetime) -> tuple[datetime, datetime]:
    found = searched(first, last)
    return found["searched_from"], found["searched_to"]


def test_days_that_a_window_has_much_of_are_searched():
    assert part(NOON, NOON + DAY) == (NOON, MIDNIGHT + 2 * DAY)


def test_days_that_it_has_little_of_are_not():
    first, last = MIDNIGHT - timedelta(minutes=10), MIDNIGHT + DAY + timedelta(minutes=10)
    assert part(first, last) == (MIDNIGHT, MIDNIGHT + DAY)


def test_a_day_is_one_in_utc():
    tokyo = timezone(timedelta(hours=9))
    first, last = NOON.astimezone(tokyo), (NOON + DAY).astimezone(tokyo)
    assert part(first, last) == part(NOON, NOON + DAY)


times = st.datetimes(datetime(2026, 1, 1), datetime(2026, 2, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(times, st.timedeltas(timedelta(0), timedelta(days=5)))
def test_whole_days_are_searched_and_what_is_scanned_is_short(first, length):
    last = first + length
    start, end = part(first, last)
    assert start >= first
    whole = first.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
    while whole + DAY <= last:
        assert start <= whole
        assert whole + DAY <= end
        whole += DAY
    before = min(start, last) - first
    after = last - max(end, first)
    assert before < SCANNED
    assert after < SCANNED


@pytest.mark.parametrize("minutes", [0, 1, 200])
def test_a_window_of_minutes_over_midnight_is_scanned_whole(minutes):
    start, end = part(
        MIDNIGHT - timedelta(minutes=5), MIDNIGHT + timedelta(minutes=minutes, seconds=1)
    )
    assert start >= end
