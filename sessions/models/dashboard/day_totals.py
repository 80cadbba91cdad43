"""Kept sums of a team's days, so that lists and dashboards do not add up every session."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import models
from django.db.models import F, Q

from sessions.models.accounts.teams import Team
from sessions.models.record.sessions import Session
from sessions.models.web.periods import DAY, HOUR, Period, happened
from sessions.models.web.statements import Statement, given_uuid
from sessions.models.web.sums import Sums

Range = tuple[int, int]
"""[since, until) in ms since the epoch."""


class KeptExtent(msgspec.Struct):
    """Sums by name, and the times of the first and last session in ms."""

    of: dict[str, int] = {}
    first: int = 0
    last: int = 0


class KeptSums(KeptExtent):
    """`Sums` as stored."""

    peaks: dict[int, int] = {}
    steps: dict[int, int] = {}

    def add_to(self, sums: Sums) -> None:
        """Add these sums to others."""
        sums.of.update(self.of)
        sums.peaks.update(self.peaks)
        sums.steps.update(self.steps)


class DayTotals(models.Model):
    """The sums of a team's sessions of one UTC day, as of the last time it was added up.

    `day` counts from the epoch. `sums` are of the day, `hours` of its hours (`KeptSums` as JSON),
    `facets` the sessions by value of each list filter, with how many of these the unfiltered list
    hides; `fullest` and `costliest` the first sessions in the dashboard's tables, one a line
    (`troubles.ranked`).
    A day is as stored unless one of its sessions is due (`due_days`).
    """

    team = models.ForeignKey(
        "agent_sessions.Team", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    day = models.PositiveIntegerField()
    sums = models.TextField()
    hours = models.TextField()
    facets = models.TextField()
    fullest = models.TextField()
    costliest = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "day"], name="day_once_per_team")]

    def __str__(self) -> str:
        return f"day {self.day} of {self.team_id}"


DUE = Q(version__gt=F("tallied_version"))
"""Sessions that changed since their day was added up."""


def due_days(team: Team) -> set[int]:
    """Days whose kept sums are missing or outdated."""
    return {day for pair in _DUE_DAYS.rows(team=team.pk) for day in pair if day is not None}


_DUE_DAYS = Statement(
    lambda: (
        Session.objects.filter(DUE, team_id=given_uuid("team"))
        .annotate(at=happened() / DAY)
        .values_list("at", "tally_day")
        .distinct()
    )
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


def kept_sums(team: Team, of: KeptTimes) -> Iterable[tuple[int, KeptSums]]:
    """The kept sums with the ms at which each begins."""
    rows = DayTotals.objects.filter(team=team)
    for day, sums in _of_days(rows, of.days).values_list("day", "sums"):
        yield day * DAY, msgspec.json.decode(sums, type=KeptSums)
    if not of.hours:
        return
    wanted = {day for day, _ in of.hours}
    for day, hours in _of_days(rows, wanted).values_list("day", "hours"):
        for hour, sums in msgspec.json.decode(hours, type=dict[int, KeptSums]).items():
            if (day, hour) in of.hours:
                yield day * DAY + hour * HOUR, sums


def _of_days(rows: Any, days: Iterable[int]) -> Any:
    """Rows of these days, by the range that holds them: a list of ids would be long."""
    days = set(days)
    if not days:
        return rows.none()
    low, high = min(days), max(days)
    rows = rows.filter(day__gte=low, day__lte=high)
    gaps = set(range(low, high + 1)) - days
    return rows.exclude(day__in=gaps) if gaps else rows


def kept_lists(team: Team, of: KeptTimes, name: str) -> list[str]:
    """The lines of `fullest` or `costliest` of the kept days together."""
    rows = _of_days(DayTotals.objects.filter(team=team), of.days)
    return [line for text in rows.values_list(name, flat=True) for line in text.split()]
