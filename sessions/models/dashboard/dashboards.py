"""Dashboard of a team: its sessions of a period, added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
from django.db.models import Count, F, Max, Min, Q, Sum

from sessions.models.accounts.audit import AuditEntry
from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import add_up
from sessions.models.dashboard.counted import LEFT
from sessions.models.dashboard.day_totals import (
    DayTotals,
    KeptExtent,
    due_days,
    kept,
    kept_sums,
    ranges_of,
    spans_of,
)
from sessions.models.record.sessions import Session
from sessions.models.reviews.reviews import Review
from sessions.models.web.periods import DAY, Period, happened, happened_in
from sessions.models.web.sums import Column, Sums, Tile, Value

MARKED = ("rollout.accepted", "rollout.widened", "rollout.completed", "rollout.rolled_back")
"""Audited actions that change the policy of new sessions."""


@dataclass(frozen=True, slots=True)
class SessionSpan:
    """A team's session count, its first and last session in ms since the epoch, and micro-dollars
    spent since a point in time (None if no session since then has a cost)."""

    sessions: int
    first: int | None
    last: int | None
    spent: int | None


def extent(team: Team, since: int) -> SessionSpan:
    """Count the team's sessions, and add up what they cost since `since` (ms, a whole day)."""
    due = due_days(team)
    rows = DayTotals.objects.filter(team=team).exclude(day__in=due)
    ends, spent = [], Sums()
    sessions = 0
    for day, text in rows.values_list("day", "sums"):
        sums = msgspec.json.decode(text, type=KeptExtent)
        if not sums.of:  # its sessions went on, into another day
            continue
        sessions += sums.of["sessions"]
        ends += [sums.first, sums.last]
        if day * DAY >= since:
            spent.of.update(sums.of)
    more = (
        Session.objects.for_team(team)
        .filter(happened_in(ranges_of(due)))
        .annotate(happened=happened())
    )
    found = more.aggregate(
        sessions=Count("pk"),
        first=Min("happened"),
        last=Max("happened"),
        cost=Sum("cost_microusd", filter=Q(happened__gte=since)),
    )
    ends += [at for at in (found["first"], found["last"]) if at is not None]
    known = spent.of["priced"] or found["cost"] is not None
    return SessionSpan(
        sessions + found["sessions"],
        min(ends, default=None),
        max(ends, default=None),
        spent.of["cost"] + (found["cost"] or 0) if known else None,
    )


@dataclass(frozen=True, slots=True)
class Mark:
    """A policy change on the time axis; `at` in ms since the epoch."""

    at: int
    action: str
    named: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Number:
    """A column of a tile with its values: for the period, the period before, and each part."""

    column: Column
    value: Value
    before: Value
    values: tuple[Value, ...]
    at_least: bool = False


@dataclass(frozen=True)
class Dashboard:
    """The sums of a period, for each part, and those of the period before."""

    period: Period
    parts: tuple[Sums, ...]
    before: Sums | None
    marks: tuple[Mark, ...]

    @cached_property
    def whole(self) -> Sums:
        """The period as a whole."""
        return _together(self.parts)

    def numbers(self, tile: Tile) -> tuple[Number, ...]:
        """The columns of a tile with their values; None where a value is unknown."""
        return tuple(
            Number(
                column,
                column.of(self.whole),
                column.of(self.before) if self.before else None,
                tuple(column.of(part) for part in self.parts),
                column.at_least(self.whole),
            )
            for column in tile.columns
        )

    def basis(self, tile: Tile) -> str:
        """Whether a tile's headline was measured or estimated."""
        if tile.basis:
            return tile.basis
        return "estimated" if self.whole.of["peak_counted"] else "measured"

    def missing(self, tile: Tile) -> list[tuple[int, str]]:
        """How many sessions a tile excludes or counts only in part, and why."""
        return [(many, why) for name, why in tile.missing if (many := self.whole.of[name])]

    def none(self, tile: Tile) -> str:
        """Why a tile has no headline."""
        of = self.whole.of
        waits = any(name == "not_assessed" for name, _ in tile.missing)
        if waits and of["not_assessed"] == of["sessions"]:
            return (
                "No session in this range has been assessed yet. Assessments run in the background "
                "after import."
            )
        return tile.none

    def forecast(self, spent: int | None, now: int, left_days: float) -> int | None:
        """Project the cost of this month in micro-dollars: `spent` so far, plus the mean cost per
        day of this period for each day left. None without prices, or if the period does not end
        now, is shorter than a day or longer than 31 days."""
        length = min(self.period.until, now) - self.period.since
        if not self.whole.of["priced"] or not DAY <= length <= 31 * DAY or self.period.until < now:
            return None
        return (spent or 0) + round(self.whole.of["cost"] / (length / DAY) * left_days)


def _together(parts: tuple[Sums, ...]) -> Sums:
    whole = Sums()
    for part in parts:
        whole.add(part)
    return whole


def dashboard(team: Team, period: Period) -> Dashboard:
    """Add up a period, from what is kept of it and from the sessions of the rest."""
    parts = [Sums() for _ in range(period.earlier + len(period.parts))]
    found = kept(team, spans_of(period), hourly=period.size < DAY)
    for at, sums in kept_sums(team, found):
        sums.add_to(parts[(at - period.origin) // period.size])
    at_part = (F("happened") - period.origin) / period.size
    for index, more in add_up(team, found.rest, at_part).items():
        parts[index].add(more)
    for part in parts:
        _work_out(part)
    return Dashboard(
        period,
        tuple(parts[period.earlier :]),
        _together(tuple(parts[: period.earlier])) if period.before else None,
        _marks(team, period),
    )


def _work_out(part: Sums) -> None:
    """Add the sums that are derived from others."""
    of = part.of
    for name, (whole, less) in LEFT.items():
        of[name] = of[whole] - of[less]
    of["no_failures"] = of["unfailed"] - of["silent"]
    of["compactions"] = of["recorded"] + of["managed"]
    compacted = max(of["compacted_in_log"] + of["compacted_by_us"], of["with_ledger"])
    of["no_compaction"] = of["sessions"] - compacted
    of["unledgered"] = compacted - of["with_ledger"]
    of["unscored"] = of["with_ledger"] - of["ledgered"]
    of["unreviewed"] = max(0, compacted - of["reviewed"])
    of["ledger_permille"] = 1000 * of["ledgers"]
    of["ledger_facts"] = of["ledger_kept"] + of["ledger_retrievable"] + of["ledger_lost"]
    of["reviews"] = sum(of[f"review_{verdict}"] for verdict in Review.Verdict.values)


def _marks(team: Team, period: Period) -> tuple[Mark, ...]:
    rows = AuditEntry.objects.filter(team=team, action__in=MARKED).order_by("at", "pk")
    marks = (
        Mark(int(row.at.timestamp() * 1000), row.action, row.named, row.detail) for row in rows
    )
    return tuple(mark for mark in marks if period.since <= mark.at < period.until)
