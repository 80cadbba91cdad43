"""Periods over which sessions are added up, and the periods they are compared with."""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo

LAST = 253_370_764_800_000
"""The beginning of the year 9999, after everything."""

HOUR = 3_600_000
DAY = 24 * HOUR
"""In milliseconds, like all times here."""

WEEK = 7
"""In days."""

RANGES: dict[str, tuple[str, int, int]] = {
    "24h": ("24 hours", 24 * HOUR, HOUR),
    "7d": ("7 days", 7 * DAY, DAY),
    "30d": ("30 days", 30 * DAY, DAY),
}
"""Ranges that end now: label, length, and length of a part."""

CALENDAR = {"today": "Today", "month": "This month", "last-month": "Last month"}
"""Ranges of whole days, with their labels."""

ALL = "all"
CUSTOM = "custom"
"""Two days of one's own, in `from` and `to`."""
USUAL = "7d"
PARTS = 62
"""Most parts per range: hours, days, weeks, or multiples of four weeks."""


class BadPeriod(Exception):
    """A URL requests an invalid range; `field` is the name of the parameter."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


@dataclass(frozen=True, slots=True)
class Period:
    """[since, until) in ms, cut into parts of `size` ms; `before` is the period to compare with.

    A range that ends now includes the current, unfinished hour or day, and `before` covers the
    equivalent time up to one length before now. None if there is nothing before.
    """

    name: str
    since: int
    until: int
    size: int
    before: tuple[int, int] | None

    @property
    def earlier(self) -> int:
        """Number of parts before the period, to compare with; part numbers start there."""
        return -(-(self.since - self.before[0]) // self.size) if self.before else 0

    @property
    def origin(self) -> int:
        """Start of the first part, comparison included."""
        return self.since - self.earlier * self.size

    @property
    def weekly(self) -> bool:
        """Whether each part consists of whole weeks."""
        begins = self.origin // DAY
        return self.size % (WEEK * DAY) == 0 and begins == monday(begins)

    @property
    def last(self) -> int:
        """The last millisecond of the period."""
        return self.until - 1

    @property
    def parts(self) -> tuple[int, ...]:
        """Start of each part of the period."""
        return tuple(range(self.since, self.until, self.size))


def ending_now(name: str, now: int) -> Period:
    """A range of RANGES; its parts are whole hours or days in UTC, the last one unfinished."""
    _, length, size = RANGES[name]
    end = -(-now // size) * size
    since = end - length
    return Period(name, since, end, size, (since - length, now - length))


def of_all(first: int, last: int) -> Period:
    """The period from the first session to the last, from a Monday on if it is cut into weeks."""
    begin, until = first // DAY, (last // DAY + 1) * DAY
    days = _cut(ALL, begin * DAY, until, None)
    return days if days.size <= DAY else _cut(ALL, monday(begin) * DAY, until, None)


def between(since: date, until: date, zone: tzinfo = UTC) -> Period:
    """The period from one day to another, both included."""
    start = _midnight(since, zone)
    length = _midnight(until + timedelta(days=1), zone) - start
    return _cut("", start, start + length, (start - length, start))


def asked_for(
    query: Mapping[str, str],
    now: int,
    first: int | None,
    last: int | None,
    zone: tzinfo = UTC,
) -> Period:
    """The period given by `range`, or by `from` and `to`; the default range without them.

    `first` and `last` are the times (ms) of the team's first and last session; days are those of
    `zone`. Raises BadPeriod.
    """
    since, until, name = (query.get(field, "").strip() for field in ("from", "to", "range"))
    if name in ("", CUSTOM) and (since or until):
        return between(*read_days(since, until), zone)
    if name == CUSTOM:
        raise BadPeriod("from", "Custom dates need a first or a last day: ?from=2026-11-30.")
    if name == ALL:
        return of_all(first or now, last or now)
    if name in CALENDAR:
        return replace(between(*_days_of(name, now, zone), zone), name=name)
    if name and name not in RANGES:
        names = ", ".join((*RANGES, *CALENDAR, ALL, CUSTOM))
        raise BadPeriod("range", f"“{name[:40]}” is not a range. Use one of {names}.")
    period = ending_now(name or USUAL, now)
    if period.size == HOUR or zone == UTC:
        return period
    last_day = datetime.fromtimestamp(now / 1000, zone).date()
    days = (period.until - period.since) // DAY
    return replace(between(last_day - timedelta(days=days - 1), last_day, zone), name=period.name)


def _days_of(name: str, now: int, zone: tzinfo) -> tuple[date, date]:
    """The first and last day of a range of CALENDAR; this month ends today."""
    today = datetime.fromtimestamp(now / 1000, zone).date()
    if name == "today":
        return today, today
    if name == "month":
        return today.replace(day=1), today
    last = today.replace(day=1) - timedelta(days=1)
    return last.replace(day=1), last


def month_of(now: int) -> tuple[int, float]:
    """Start of the current month in ms, and the days left in it."""
    today = datetime.fromtimestamp(now / 1000, UTC)
    start = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begun = int(start.timestamp()) * 1000
    return begun, calendar.monthrange(today.year, today.month)[1] - (now - begun) / DAY


def _cut(name: str, since: int, until: int, before: tuple[int, int] | None) -> Period:
    length = until - since
    size = HOUR if length <= 2 * DAY else DAY
    for days in (7, 28, 364):
        if length > PARTS * size:
            size = days * DAY
    return Period(name, since, until, size, before)


def monday(day: int) -> int:
    """The first day of a day's week; days count from the epoch, a Thursday."""
    return day - (day + 3) % WEEK


def _midnight(day: date, zone: tzinfo) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=zone).timestamp()) * 1000


def read_days(since: str, until: str) -> tuple[date, date]:
    """Parse two days (YYYY-MM-DD); a missing one defaults to the other. Raises BadPeriod."""
    begin = _day("from", since or until)
    end = _day("to", until or since)
    if end < begin:
        raise BadPeriod("to", f"{end} is before {begin}; swap the dates.")
    return begin, end


def written(ms: int) -> str:
    """Format a time for URLs: 2026-11-30T13:00Z."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%MZ}"


def read_time(text: str) -> int | None:
    """Parse a time from a URL into ms; None if it is invalid."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()) * 1000


def _day(field: str, text: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or not 1971 <= found.year <= 9000:
        raise BadPeriod(field, f"“{text[:40]}” is not a valid date. Write it like 2026-11-30.")
    return found
