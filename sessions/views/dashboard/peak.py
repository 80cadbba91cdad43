"""The most expensive day of a range, and why: also an hour or a week, as the charts have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.urls import reverse

from sessions.figures import day, finely, money, tokens
from sessions.models import Session, Team
from sessions.models.cache.causes import causes_in
from sessions.models.dashboard.costliest import (
    Spent,
    costliest_session,
    spent,
    spent_by_others,
)
from sessions.models.dashboard.dashboards import Dashboard, dashboard, day_costs
from sessions.models.dashboard.slices import Split
from sessions.models.web.periods import DAY, HOUR, Period
from sessions.models.web.sums import Sums
from sessions.views.dashboard.controls import query
from sessions.views.dashboard.links import part_days, sessions_url

MOSTLY = 0.4
"""Share of its cost from which one session explains a day (our choice)."""
SPEAKS = 0.05
"""Share of its cost from which avoidable cache breaks are named."""


@dataclass(frozen=True, slots=True)
class CostPeak:
    """The most expensive part of a range: sentences that say what it cost and why, the session
    that cost most, and where its sessions and avoidable breaks are listed."""

    title: str
    what: str
    why: str
    session: Session
    session_cost: str
    session_why: str
    sessions: int
    url: str
    avoidable: str
    avoidable_url: str


def cost_peak(team: Team, made: Dashboard, split: Split) -> CostPeak | None:
    """Find it; None if fewer than two parts of the range have a cost."""
    place = _place(team, made, split)
    if place is None:
        return None
    period, part, others = place
    cost = part.of["cost"]
    found = costliest_session(team, period, split)
    if found is None or not found.cost_microusd:
        return None
    size = {HOUR: "hour", DAY: "day"}.get(period.size, f"{period.size // DAY} days")
    rest = Sums(made.whole.of - part.of)
    return CostPeak(
        f"Most expensive {size}",
        f"Sessions that ended {_named(period)} cost {money(cost)}, "
        f"{finely(cost / made.whole.of['cost'])} of the range",
        _why(part, rest, found.cost_microusd, others, size),
        found,
        money(found.cost_microusd),
        _session_why(found, spent_by_others(team, made.period, split, found)),
        part.of["sessions"],
        sessions_url(period, split, sort="cost"),
        *_avoidable(part, period, split),
    )


def _place(team: Team, made: Dashboard, split: Split) -> tuple[Period, Sums, int] | None:
    """The most expensive hour or day with its sums, and how many others have a cost: a day of a
    range that is drawn in weeks too, unless it is split."""
    whole = made.period
    if whole.size > DAY and not split:
        costs = day_costs(team, whole)
        if len(costs) < 2:
            return None
        most = max(costs, key=lambda one: (costs[one], one))
        period = Period("", most * DAY, (most + 1) * DAY, DAY, None)
        return period, dashboard(team, period).whole, len(costs) - 1
    parts = [(part.of["cost"], index) for index, part in enumerate(made.parts) if part.of["cost"]]
    if len(parts) < 2:
        return None
    index = max(parts)[1]
    at = whole.parts[index]
    period = replace(whole, since=at, until=at + whole.size, before=None)
    return period, made.parts[index], len(parts) - 1


def _why(part: Sums, rest: Sums, costliest: int, others: int, size: str) -> str:
    """The largest of three reasons: one session, more sessions, or more expensive ones."""
    of = part.of
    if costliest >= MOSTLY * of["cost"]:
        return f"One session made {finely(costliest / of['cost'])} of it"
    usual, each = rest.of["sessions"] / others, of["cost"] / of["sessions"]
    each_usual = rest.of["cost"] / (rest.of["sessions"] or 1)
    if of["sessions"] / (usual or 1) >= each / (each_usual or 1):
        return f"It had {of['sessions']:,} sessions; an average other {size} has {usual:,.1f}"
    return (
        f"Its sessions cost {money(round(each))} each; those of the rest of the range "
        f"{money(round(each_usual))}"
    )


def _session_why(found: Session, others: Spent) -> str:
    """What made a session expensive: its cost beside that of an average other of the range, by the
    factor that explains most of the difference.

    Cost is steps x prompt tokens a step x weight of a token x price. The weight is that of its
    kinds, at the usual ratios of list prices: a cache read costs 0.1 and a cache write 1.25 of an
    uncached token, output 5. Exact where a model's prices have these ratios.
    """
    mine = spent(found)
    said = f"{mine.steps:,} step{'' if mine.steps == 1 else 's'}" + (
        f" with {found.model}" if found.model else ""
    )
    if not (others.steps and others.prompt and others.cost and mine.steps and mine.prompt):
        return said
    usual = others.cost / others.sessions
    if mine.cost <= usual:
        return said
    theirs = others.steps / others.sessions
    times = {
        f"its steps: {mine.steps:,}, an average other session has {theirs:,.0f}": (
            mine.steps / theirs
        ),
        f"its prompts: {tokens(round(mine.prompt / mine.steps))} tokens a step, the others "
        f"{tokens(round(others.prompt / others.steps))}": (
            (mine.prompt / mine.steps) / (others.prompt / others.steps)
        ),
        _mix(mine, others): _weight(mine) / _weight(others),
        f"its model's price: {_price(mine) / _price(others):.1f} times that of the others for the "
        "same tokens": _price(mine) / _price(others),
    }
    most = max(times, key=lambda one: times[one])
    return f"{said}. Mostly {most}; an average other session costs {money(round(usual))}"


def _mix(mine: Spent, others: Spent) -> str:
    read, usual = mine.read / mine.prompt, others.read / others.prompt
    if read < usual:
        return f"its cache: {finely(read)} of its prompts were read, of the others {finely(usual)}"
    share, often = mine.output / mine.prompt, others.output / others.prompt
    return f"its output: {finely(share)} of its prompts' size, the others {finely(often)}"


def _weight(of: Spent) -> float:
    """Average price of its tokens per prompt token, in that of an uncached one."""
    weighed = of.uncached + 0.1 * of.read + 1.25 * of.write + 5 * of.output
    return weighed / of.prompt


def _price(of: Spent) -> float:
    """Micro-dollars of a token that counts as one uncached."""
    return of.cost / (_weight(of) * of.prompt)


def _avoidable(part: Sums, period: Period, split: Split) -> tuple[str, str]:
    """What avoidable cache breaks added, and where they are; empty if it is little."""
    paid = part.of["avoidable"]
    top = next((one for one in causes_in(part) if one.avoidable), None)
    if top is None or paid < SPEAKS * part.of["cost"]:
        return "", ""
    asked = query(split, **part_days(period.since, period.until))
    return (
        f"{money(paid)} of it was avoidable cache breaks, most of them “{top.name}”",
        f"{reverse('cache')}{asked}",
    )


def _named(period: Period) -> str:
    """When the sessions ended: the whole cost of each counts then."""
    first, last = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (period.since, period.last))
    if period.size == HOUR:
        return f"on {day(first)} from {first:%H:%M} UTC"
    if period.size == DAY:
        return f"on {day(first)}"
    return f"from {day(first)} to {day(last)}"
