"""Add up sessions by parts of the time in which they happened, from their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from django.db.models import BigIntegerField, Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Cast

from sessions.models.accounts.teams import Team
from sessions.models.cache.break_totals import BREAKS, BreakTotals, break_sum
from sessions.models.dashboard.counted import CONDITIONS, SUMMED, SUMMED_UNMANAGED, UNMANAGED
from sessions.models.dashboard.matching import REAL_RUNS
from sessions.models.record.demo_data import counts
from sessions.models.record.revisions import Revision, Run
from sessions.models.record.sessions import Session
from sessions.models.reviews.assessments import FactLedger
from sessions.models.reviews.reviews import Review
from sessions.models.web.happened import StatementIn, happened, happened_in
from sessions.models.web.periods import DAY
from sessions.models.web.statements import Given, given_int, given_text, given_uuid
from sessions.models.web.sums import Sums

Ranges = Sequence[tuple[int, int]]
"""Of [since, until) in ms since the epoch."""

Times = Sequence[tuple[Given, Given]]

Slice = tuple[str, str, str]
"""Agent, model, and policy as name@number, "" without one."""

_CHOSEN: dict[str, tuple[str, Callable[[str], Given]]] = {
    "agent": ("agent", given_text),
    "model": ("model", given_text),
    "policy": ("policy_version__policy__name", given_text),
    "number": ("policy_version__number", given_int),
}
"""What sessions can be chosen by: a column of a session."""

SLICE = ("agent", "model", "policy_version__policy__name", "policy_version__number")

_ALL = 1 << 40
"""More sessions than there are."""

_TEAM = given_uuid("team")
_PART = (F("happened") - given_int("origin")) / given_int("size")
"""The number of the part in which a session happened."""


def add_up(team: Team, ranges: Ranges, origin: int, size: int) -> dict[int, Sums]:
    """The sums of the team's sessions by part, in seven queries however many sessions there are.

    Parts of `size` ms are numbered from `origin` on.
    """
    found = _WHOLE.rows(ranges, team=team.pk, origin=origin, size=size)
    return {part: sums for (part,), sums in found.items()}


def add_up_slices(
    team: Team, ranges: Ranges, origin: int, size: int
) -> dict[tuple[int, Slice], Sums]:
    """The sums by part and slice, in seven queries too."""
    found = _SLICED.rows(ranges, team=team.pk, origin=origin, size=size)
    return {(part, slice_of(*one)): sums for (part, *one), sums in found.items()}


def add_up_some(
    team: Team, ranges: Ranges, origin: int, size: int, chosen: Mapping[str, str | int]
) -> dict[int, Sums]:
    """The sums by part of the sessions with these values, by names of `_CHOSEN`."""
    given = {"team": team.pk, "origin": origin, "size": size, **chosen}
    found = _some(tuple(chosen)).rows(ranges, **given)
    return {part: sums for (part,), sums in found.items()}


def slice_of(agent: str, model: str, name: str | None, number: int | None) -> Slice:
    """A slice from the columns of `SLICE`."""
    return agent, model, f"{name}@{number}" if name else ""


def extents(team: Team, ranges: Ranges) -> list[tuple[int, int, int, int, int | None]]:
    """Of each day with sessions in these times: the day, how many, the times of the first and the
    last in ms, and their cost in micro-dollars (None if no session has one)."""
    return _EXTENTS.rows(ranges, team=team.pk, origin=0, size=DAY)


def _extents(times: Times) -> QuerySet[Any]:
    named = {
        "sessions": Count("*"),
        "first": Min("happened"),
        "last": Max("happened"),
        "cost": Sum("cost_microusd"),
    }
    rows = _inside(Session.objects.filter(team_id=_TEAM), times).annotate(**named)
    return rows.values_list("part", *named)


_EXTENTS = StatementIn(_extents)


def _inside(
    rows: QuerySet[Any],
    times: Times,
    path: str = "",
    by: Sequence[str] = (),
    chosen: Sequence[str] = (),
) -> QuerySet[Any]:
    """Rows whose session counts, happened in these times and has the values of these names, grouped
    by its `part` and by these columns of it. `path` leads from the row to its session, as in
    `happened`."""
    inside = sessions_inside(times, chosen)
    if path:
        # These sessions are the team's. The team named again, SQLite without statistics would begin
        # with all of its sessions. With the limit PostgreSQL finds the few sessions first, and then
        # what belongs to them: else it may read all managed runs for the sessions of a day.
        rows = rows.filter(**{f"{path.removesuffix('__')}__in": inside.values("pk")[:_ALL]})
    else:
        rows = rows & inside
    timed = rows.annotate(happened=happened(path))
    return timed.annotate(part=_PART).order_by().values(*_group(path, by))


def sessions_inside(times: Times, chosen: Sequence[str] = ()) -> QuerySet[Session]:
    """The sessions of a team that count, happened in these times and have these values."""
    wanted = {_CHOSEN[name][0]: _CHOSEN[name][1](name) for name in chosen}
    return Session.objects.filter(counts(_TEAM), happened_in(times), team_id=_TEAM, **wanted)


def _group(path: str, by: Sequence[str]) -> list[str]:
    return ["part", *(path + name for name in by)]


def _of_sessions() -> dict[str, Any]:
    # Grouping sorts the columns that it counts: a small one that is never null is quicker than ids.
    many = {name: Count("step_count", filter=where) for name, where in CONDITIONS.items()}
    sums = {name: Sum(of) for name, of in SUMMED.items()}
    apart = {name: Sum(of, filter=UNMANAGED) for name, of in SUMMED_UNMANAGED.items()}
    return {"sessions": Count("*")} | many | sums | apart


def _of_compactions() -> dict[str, Any]:
    silent = Q(run__session__compaction_count=0)
    return {
        "managed": Count("pk", distinct=True),
        "compacted_by_us": Count("run__session", distinct=True, filter=silent),
    }


def _of_ledgers() -> dict[str, Any]:
    scored = Q(score__isnull=False)
    sums = ("score", "kept", "retrievable", "lost", "unsupported")
    return {
        "ledgers_made": Count("pk"),
        "ledgers": Count("pk", filter=scored),
        "with_ledger": Count("revision__run__session", distinct=True),
        "ledgered": Count("revision__run__session", distinct=True, filter=scored),
        **{f"ledger_{name}": Sum(name, filter=scored) for name in sums},
    }


def _of_reviews() -> dict[str, Any]:
    verdicts = {
        f"review_{verdict}": Count("pk", filter=Q(verdict=verdict))
        for verdict in Review.Verdict.values
    }
    return {"reviewed": Count("item__revision__run__session", distinct=True), **verdicts}


_COUNTED: tuple[tuple[Callable[[], QuerySet[Any]], str, Callable[[], dict[str, Any]]], ...] = (
    (lambda: Session.objects.filter(team_id=_TEAM), "", _of_sessions),
    (
        lambda: Revision.objects.filter(run__origin=Run.Origin.MANAGED, edits__strategy="compact"),
        "run__session__",
        _of_compactions,
    ),
    (
        lambda: FactLedger.objects.filter(revision__run__origin__in=REAL_RUNS),
        "revision__run__session__",
        _of_ledgers,
    ),
    (
        lambda: Review.objects.filter(
            item__finished__isnull=False,
            submitted__isnull=False,
        ),
        "item__revision__run__session__",
        _of_reviews,
    ),
)


class _Grouped:
    """The queries for sums by part, and by further columns of the session, of the sessions with
    the values of some names."""

    def __init__(self, by: Sequence[str] = (), chosen: Sequence[str] = ()) -> None:
        self._by, self._chosen = by, chosen
        self._sums = [self._summed(*counted) for counted in _COUNTED]
        self._peaks, self._steps = StatementIn(self._of_peaks), StatementIn(self._of_steps)
        self._breaks = StatementIn(self._of_breaks)

    def rows(self, ranges: Ranges, **given: Any) -> dict[tuple[Any, ...], Sums]:
        """The sums, by part and columns."""
        found: dict[tuple[Any, ...], Sums] = defaultdict(Sums)
        width = 1 + len(self._by)
        for names, statement in self._sums:
            for row in statement.rows(ranges, **given):
                sums = zip(names, row[width:], strict=True)
                found[row[:width]].of.update({name: int(value or 0) for name, value in sums})
        for *group, peak, many in self._peaks.rows(ranges, **given):
            found[tuple(group)].peaks[peak] += many
        for *group, steps, many in self._steps.rows(ranges, **given):
            found[tuple(group)].steps[steps] += many
        for row in self._breaks.rows(ranges, **given):
            *group, cause, can = row[: width + 2]
            for name, value in zip(BREAKS, row[width + 2 :], strict=True):
                found[tuple(group)].of[break_sum(cause, name, avoidable=can)] += int(value or 0)
        return found

    def _summed(
        self,
        rows: Callable[[], QuerySet[Any]],
        path: str,
        columns: Callable[[], dict[str, Any]],
    ) -> tuple[list[str], StatementIn]:
        """Names of sums, and the query for them."""
        named = {f"s_{name}": column for name, column in columns().items()}
        return [name.removeprefix("s_") for name in named], StatementIn(
            lambda times: (
                _inside(rows(), times, path, self._by, self._chosen)
                .annotate(**named)
                .values_list(*_group(path, self._by), *named)
            )
        )

    def _of_peaks(self, times: Times) -> QuerySet[Any]:
        permille = Cast(F("peak_tokens"), BigIntegerField()) * 1000 / F("window")
        filled = Session.objects.filter(team_id=_TEAM, window__gt=0, peak_tokens__gt=0)
        inside = _inside(filled, times, by=self._by, chosen=self._chosen)
        return self._many(inside.annotate(permille=permille), "permille")

    def _of_steps(self, times: Times) -> QuerySet[Any]:
        stepped = Session.objects.filter(team_id=_TEAM, step_count__gt=0)
        inside = _inside(stepped, times, by=self._by, chosen=self._chosen)
        return self._many(inside, "step_count")

    def _of_breaks(self, times: Times) -> QuerySet[Any]:
        rows = BreakTotals.objects.all()
        inside = _inside(rows, times, "session__", self._by, self._chosen)
        group = [*_group("session__", self._by), "cause", "avoidable"]
        named = {f"s_{name}": column for name, column in BREAKS.items()}
        return inside.values(*group).annotate(**named).values_list(*group, *named)

    def _many(self, rows: QuerySet[Any], name: str) -> QuerySet[Any]:
        group = [*_group("", self._by), name]
        return rows.values(*group).annotate(many=Count("*")).values_list(*group, "many")


_WHOLE, _SLICED = _Grouped(), _Grouped(SLICE)


@cache
def _some(chosen: tuple[str, ...]) -> _Grouped:
    return _Grouped(chosen=chosen)
