"""Dashboard of a team: its sessions of a period, added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sessions.models.accounts.audit import AuditEntry
from sessions.models.accounts.teams import Team
from sessions.models.dashboard.added_up import add_up, extents
from sessions.models.dashboard.counted import LEFT
from sessions.models.dashboard.day_totals import (
    EXTENT,
    DayTotals,
    due_days,
    kept,
    kept_sums,
    ranges_of,
    spans_of,
)
from sessions.models.dashboard.slices import EVERYTHING, Split, split_sums
from sessions.models.reviews.reviews import Review
from sessions.models.web.periods import DAY, Period
from sessions.models.web.statements import Statement, given_time, given_uuid
from sessions.models.web.sums import Column, Sums, Tile, Value

MARKED = ("rollout.accepted", "rollout.widened", "rollout.completed", "rollout.rolled_back")
"""Audited actions that change the policy of new sessions."""


FEW = 5
"""Sessions with a known cost below which a range may be too short to show."""


@dataclass(frozen=True, slots=True)
class SessionSpan:
    """A team's session count, its first and last session in ms since the epoch, micro-dollars spent
    since a point in time (None if no session since then has a cost), and the last session in ms
    and session count of each day that has a known cost."""

    sessions: int
    first: int | None
    last: int | None
    spent: int | None
    priced: tuple[tuple[int, int], ...] = ()

    def mostly_before(self, since: int) -> bool:
        """Whether hardly any session with a known cost (less than `FEW`, and less than a tenth)
        ended at or after `since` (ms), counted in whole days."""
        recent = sum(many for last, many in self.priced if last >= since)
        return recent < FEW and recent * 10 < sum(many for _, many in self.priced)


def extent(team: Team, since: int) -> SessionSpan:
    """Count the team's sessions, and add up what they cost since `since` (ms, a whole day)."""
    found = _extents(team)
    costs = [cost for day, *_, cost in found if day * DAY >= since and cost is not None]
    return SessionSpan(
        sum(row[1] for row in found),
        min((row[2] for row in found), default=None),
        max((row[3] for row in found), default=None),
        sum(costs) if costs else None,
        tuple(sorted((row[3], row[1]) for row in found if row[-1] is not None)),
    )


def day_costs(team: Team, period: Period) -> dict[int, int]:
    """What each day of a period cost in micro-dollars; days without a known cost are left out."""
    return {
        day: cost
        for day, *_, cost in _extents(team)
        if cost and period.since <= day * DAY < period.until
    }


def _extents(team: Team) -> list[tuple[int, int, int, int, int | None]]:
    """Each day with sessions, as `extents`: from what is kept, and from the rows of due days."""
    due = due_days(team)
    days = [row for row in _KEPT.rows(team=team.pk) if row[0] not in due]
    return [row for row in [*days, *extents(team, ranges_of(due))] if row[1]]


_KEPT = Statement(
    lambda: DayTotals.objects.filter(team_id=given_uuid("team"), days=1).values_list("day", *EXTENT)
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
    earlier: tuple[Sums, ...]
    """Parts of the period before."""
    marks: tuple[Mark, ...]

    @cached_property
    def whole(self) -> Sums:
        """The period as a whole."""
        return Sums.together(self.parts)

    @cached_property
    def before(self) -> Sums | None:
        """The period before as a whole; None if there is none."""
        return Sums.together(self.earlier) if self.period.before else None

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
        if tile.name == "recall" and of["compactions"]:
            return (
                f"{of['compactions']:,} compaction{'' if of['compactions'] == 1 else 's'} removed "
                "text, but no later call used a fact that the model had read before."
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


def dashboard(team: Team, period: Period, split: Split = EVERYTHING) -> Dashboard:
    """Add up a period, from what is kept of it and from the sessions of the rest; with a split,
    the sessions of one agent, model or policy."""
    parts = [Sums() for _ in range(period.earlier + len(period.parts))]
    if split:
        for index, more in split_sums(team, period, split):
            parts[index].add(more)
    else:
        _add_all(team, period, parts)
    for part in parts:
        _work_out(part)
    shown, earlier = parts[period.earlier :], parts[: period.earlier]
    return Dashboard(
        period,
        tuple(shown),
        tuple(earlier),
        _marks(team, period),
    )


def _add_all(team: Team, period: Period, parts: list[Sums]) -> None:
    found = kept(team, spans_of(period), hourly=period.size < DAY)
    for at, sums in kept_sums(team, found, weekly=period.weekly):
        sums.add_to(parts[(at - period.origin) // period.size])
    for index, more in add_up(team, found.rest, period.origin, period.size).items():
        parts[index].add(more)


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
    of["avoidable_short"] = of["split_partial"] + of["no_price"]
    of["ledger_permille"] = 1000 * of["ledgers"]
    of["ledger_facts"] = of["ledger_kept"] + of["ledger_retrievable"] + of["ledger_lost"]
    of["reviews"] = sum(of[f"review_{verdict}"] for verdict in Review.Verdict.values)


def _marks(team: Team, period: Period) -> tuple[Mark, ...]:
    times = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (period.since, period.until))
    rows = _MARKS.rows(team=team.pk, **dict(zip(("since", "until"), times, strict=True)))
    return tuple(Mark(int(at.timestamp() * 1000), *more) for at, *more in rows)


_MARKS = Statement(
    lambda: (
        AuditEntry.objects.filter(
            team_id=given_uuid("team"),
            action__in=MARKED,
            at__gte=given_time("since"),
            at__lt=given_time("until"),
        )
        .order_by("at", "pk")
        .values_list("at", "action", "named", "detail")
    )
)
