"""Kept sums of a team's days and weeks: lists and dashboards do not add up every session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

import msgspec
from django.db import models
from django.db.models import F, Q

from sessions.models.accounts.teams import Team
from sessions.models.record.sessions import Session
from sessions.models.web.happened import happened
from sessions.models.web.periods import DAY, HOUR, WEEK, Period, monday
from sessions.models.web.statements import Statement, StatementAmong, given_int, given_uuid
from sessions.models.web.sums import Sums

Range = tuple[int, int]
"""[since, until) in ms since the epoch."""


class KeptSums(msgspec.Struct):
    """`Sums` as stored."""

    of: dict[str, int] = {}
    peaks: dict[int, int] = {}
    steps: dict[int, int] = {}

    @classmethod
    def of_sums(cls, sums: Sums) -> KeptSums:
        """Sums for storage."""
        of = {name: many for name, many in sums.of.items() if many}
        return cls(of, dict(sums.peaks), dict(sums.steps))

    def add_to(self, sums: Sums) -> None:
        """Add these sums to others."""
        sums.of.update(self.of)
        sums.peaks.update(self.peaks)
        sums.steps.update(self.steps)


class DayTotals(models.Model):
    """The sums of a team's sessions of one UTC day, or of the week that begins with it, as of the
    last time they were added up.

    `day` counts from the epoch. `sums` are of the `days`, `hours` of a day's hours (`KeptSums` as
    JSON), `facets` the sessions by value of each list filter, with how many of these the unfiltered
    list hides, `slices` the sums by agent, model and policy (`slices.KeptSlices`); `fullest` and
    `costliest` the first sessions in the dashboard's tables, one a line (`troubles.ranked`). A day
    also has its number of `sessions`, the times of the first and the last in ms, and their cost in
    micro-dollars, None if no session has one.
    A day is as stored unless one of its sessions is due (`due_days`); so is a week that is stored.
    """

    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    day = models.PositiveIntegerField()
    days = models.PositiveSmallIntegerField(default=1)
    sessions = models.PositiveBigIntegerField(default=0)
    first = models.PositiveBigIntegerField(default=0)
    last = models.PositiveBigIntegerField(default=0)
    cost = models.BigIntegerField(null=True)
    sums = models.TextField()
    hours = models.TextField()
    facets = models.TextField()
    slices = models.TextField(default="[]")
    fullest = models.TextField()
    costliest = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "days", "day"], name="day_once_per_team")
        ]

    def __str__(self) -> str:
        return f"{self.days} days from day {self.day} of {self.team_id}"


EXTENT = ("sessions", "first", "last", "cost")
"""The columns of a day's extent."""

DUE = Q(version__gt=F("tallied_version"))
"""Sessions that changed since their day was added up."""


def due_days(team: Team) -> set[int]:
    """Days whose kept sums are missing or outdated."""
    known = _KNOWN_DUE.get()
    if known is None:
        return _ask_due(team)
    if team.pk not in known:
        known[team.pk] = _ask_due(team)
    return known[team.pk]


_KNOWN_DUE: ContextVar[dict[UUID, set[int]] | None] = ContextVar("known_due", default=None)


@contextmanager
def due_once() -> Iterator[None]:
    """Ask once for each team's due days, for a page that reads sums several times. What changes
    meanwhile is shown as it was kept."""
    token = _KNOWN_DUE.set({})
    try:
        yield
    finally:
        _KNOWN_DUE.reset(token)


def _ask_due(team: Team) -> set[int]:
    return {day for pair in _DUE_DAYS.rows(team=team.pk) for day in pair if day is not None}


_DUE_DAYS = Statement(
    lambda: (
        Session.objects.filter(DUE, team_id=given_uuid("team"))
        .annotate(at=happened() / DAY)
        .values_list("at", "tally_day")
        .distinct()
    )
)


def kept_days(team: Team) -> list[int]:
    """Days whose sums were kept, outdated or not."""
    return _KEPT_DAYS.column(team=team.pk)


_KEPT_DAYS = Statement(
    lambda: DayTotals.objects.filter(team_id=given_uuid("team"), days=1).values_list("day")
)


@dataclass(frozen=True, slots=True)
class KeptTimes:
    """What is kept of a time: whole days, single hours of others as [day, hour], and the rest,
    which must be added up."""

    days: frozenset[int]
    hours: frozenset[tuple[int, int]]
    rest: tuple[Range, ...]

    @property
    def but_days(self) -> list[Range]:
        """All but the whole days, neighbors together: each range is a condition of a query."""
        hours = ((at := day * DAY + hour * HOUR, at + HOUR) for day, hour in self.hours)
        found: list[Range] = []
        for since, until in sorted([*self.rest, *hours]):
            _extend(found, since, until)
        return found


def kept(team: Team, spans: Iterable[Range], *, hourly: bool = False) -> KeptTimes:
    """Divide times into what is kept and what is not; `hourly` takes the hours of whole days."""
    due = due_days(team)
    days: set[int] = set()
    hours: set[tuple[int, int]] = set()
    rest: list[Range] = []
    for since, until in spans:
        for day in range(since // DAY, -(-until // DAY)):
            begin, end = max(since, day * DAY), min(until, (day + 1) * DAY)
            if day in due:
                _extend(rest, begin, end)
            elif end - begin == DAY and not hourly:
                days.add(day)
            else:
                first, last = -(-begin // HOUR), end // HOUR
                _extend(rest, begin, min(end, first * HOUR))
                hours |= {(day, hour % 24) for hour in range(first, last)}
                _extend(rest, max(begin, last * HOUR), end)
    return KeptTimes(frozenset(days), frozenset(hours), tuple(rest))


def ranges_of(days: Iterable[int]) -> list[Range]:
    """The times of days, neighbors together."""
    found: list[Range] = []
    for day in sorted(days):
        _extend(found, day * DAY, (day + 1) * DAY)
    return found


def _extend(ranges: list[Range], since: int, until: int) -> None:
    if until <= since:
        return
    if ranges and ranges[-1][1] == since:
        since = ranges.pop()[0]
    ranges.append((since, until))


def spans_of(period: Period) -> list[Range]:
    """The times of a period: the one before, to compare with, and its own."""
    return [*([period.before] if period.before else []), (period.since, period.until)]


def kept_sums(team: Team, of: KeptTimes, *, weekly: bool) -> Iterator[tuple[int, KeptSums]]:
    """The kept sums with the ms at which each begins; `weekly` as in `kept_texts`."""
    for day, text in kept_texts(team, of.days, "sums", weekly=weekly):
        yield day * DAY, msgspec.json.decode(text, type=KeptSums)
    for day, hours in kept_texts(team, {day for day, _ in of.hours}, "hours"):
        for hour, sums in msgspec.json.decode(hours, type=dict[int, KeptSums]).items():
            if (day, hour) in of.hours:
                yield day * DAY + hour * HOUR, sums


def kept_lists(team: Team, of: KeptTimes, name: str) -> list[str]:
    """The lines of `fullest` or `costliest` of the kept days together."""
    texts = kept_texts(team, of.days, name, weekly=True)
    return [line for _, text in texts for line in text.split()]


def kept_texts(
    team: Team, days: Collection[int], name: str, *, weekly: bool = False
) -> Iterator[tuple[int, str]]:
    """A column of the rows of these days, each with its first day; `weekly` takes a week's row
    instead of those of its days."""
    left = set(days)
    if weekly:
        mondays = [day for day in left if day == monday(day) and left.issuperset(week(day))]
        for day, text in _TEXTS[name].rows(sorted(mondays), team=team.pk, days=WEEK):
            left -= set(week(day))
            yield day, text
    yield from _TEXTS[name].rows(sorted(left), team=team.pk, days=1)


def week(first: int) -> range:
    """The days of a week."""
    return range(first, first + WEEK)


def _text_of(name: str) -> StatementAmong:
    rows = DayTotals.objects.filter
    given = {"team_id": given_uuid("team"), "days": given_int("days")}
    return StatementAmong(
        lambda days: rows(**given, day__in=days).values_list("day", name), given_int
    )


TEXTS = ("sums", "hours", "facets", "slices", "fullest", "costliest")
_TEXTS = {name: _text_of(name) for name in TEXTS}
