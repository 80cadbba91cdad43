"""Dashboard of a team: its sessions of a period, added up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum

from sessions.models.accounts.audit import AuditEntry
from sessions.models.accounts.teams import Team
from sessions.models.dashboard.counted import CONDITIONS, LEFT, SUMMED
from sessions.models.dashboard.tiles import REAL_RUNS
from sessions.models.record.revisions import Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.reviews.assessments import FactLedger
from sessions.models.reviews.reviews import Review
from sessions.models.web.periods import DAY, Period, happened
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
    """Count the team's sessions, and add up what they cost since `since` (ms)."""
    rows = Session.objects.for_team(team).annotate(happened=happened())
    found = rows.aggregate(
        sessions=Count("pk"),
        first=Min("happened"),
        last=Max("happened"),
        spent=Sum("cost_microusd", filter=Q(happened__gte=since)),
    )
    return SessionSpan(**found)


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
    """Add up a period in six queries, however many sessions there are."""
    parts = [Sums() for _ in range(period.earlier + len(period.parts))]
    for read in _sums, _compactions, _ledgers, _reviews:
        for row in read(team, period):
            parts[row.pop("part")].of.update(row)
    for index, peak, window, steps in _sizes(team, period):
        if peak and window:
            parts[index].peaks.append(peak / window)
        if steps:
            parts[index].steps.append(steps)
    for part in parts:
        _work_out(part)
    return Dashboard(
        period,
        tuple(parts[period.earlier :]),
        _together(tuple(parts[: period.earlier])) if period.before else None,
        _marks(team, period),
    )


def within(rows: QuerySet[Any], period: Period, path: str = "") -> QuerySet[Any]:
    """Rows whose session is in the period or the period before, each annotated with the number of
    its `part`. `path` leads from the row to its session, as in `happened`."""
    rows = rows.annotate(happened=happened(path))
    inside = Q(happened__gte=period.since, happened__lt=period.until)
    if period.before:
        inside |= Q(happened__gte=period.before[0], happened__lt=period.before[1])
    return rows.filter(inside).annotate(part=(F("happened") - period.origin) / period.size)


Rows = Iterator[dict[str, int]]


def _sums(team: Team, period: Period) -> Rows:
    rows = within(Session.objects.for_team(team), period).order_by().values("part")
    # Grouping sorts the columns that it counts: a small one that is never null is quicker than ids.
    counts = {f"n_{name}": Count("step_count", filter=where) for name, where in CONDITIONS.items()}
    sums = {f"s_{name}": Sum(column) for name, column in SUMMED.items()}
    for row in rows.annotate(n_sessions=Count("*"), **counts, **sums):
        yield {name.removeprefix("n_").removeprefix("s_"): int(row[name] or 0) for name in row}


def _sizes(team: Team, period: Period) -> Iterator[tuple[int, int, int | None, int]]:
    rows = within(Session.objects.for_team(team), period)
    yield from rows.values_list("part", "peak_tokens", "window", "step_count")


def _compactions(team: Team, period: Period) -> Rows:
    made = Revision.objects.filter(
        run__session__team=team, run__origin=Run.Origin.MANAGED, edits__strategy="compact"
    )
    rows = within(made, period, "run__session__").order_by().values("part")
    found = rows.annotate(
        managed=Count("pk", distinct=True),
        compacted_by_us=Count(
            "run__session", distinct=True, filter=Q(run__session__compaction_count=0)
        ),
    )
    for row in found:
        yield {name: int(row[name]) for name in row}


def _ledgers(team: Team, period: Period) -> Rows:
    made = FactLedger.objects.filter(
        revision__run__session__team=team, revision__run__origin__in=REAL_RUNS
    )
    rows = within(made, period, "revision__run__session__").order_by().values("part")
    scored = Q(score__isnull=False)
    sums = ("score", "kept", "retrievable", "lost", "unsupported")
    found = rows.annotate(
        ledgers_made=Count("pk"),
        ledgers=Count("pk", filter=scored),
        with_ledger=Count("revision__run__session", distinct=True),
        ledgered=Count("revision__run__session", distinct=True, filter=scored),
        **{f"s_{name}": Sum(name, filter=scored) for name in sums},
    )
    for row in found:
        yield {re.sub("^s_", "ledger_", name): int(row[name] or 0) for name in row}


def _reviews(team: Team, period: Period) -> Rows:
    made = Review.objects.filter(
        item__team=team, item__finished__isnull=False, submitted__isnull=False
    )
    rows = within(made, period, "item__revision__run__session__").order_by().values("part")
    verdicts = {
        f"review_{verdict}": Count("pk", filter=Q(verdict=verdict))
        for verdict in Review.Verdict.values
    }
    found = rows.annotate(reviewed=Count("item__revision__run__session", distinct=True), **verdicts)
    for row in found:
        yield {name: int(row[name]) for name in row}


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
