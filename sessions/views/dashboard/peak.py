"""The most expensive day of a range, and why: also an hour or a week, as the charts have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import log

from django.urls import reverse

from sessions.actions.web.verdicts import listed
from sessions.figures import at_least, day, finely, money, tokens
from sessions.models import Session, Team
from sessions.models.cache.causes import CauseSums, causes_in
from sessions.models.dashboard.costliest import MOST as COMPARED
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
CLOSE = 0.7
"""How much of what the largest factor explains another has to, to be named beside it (ours)."""
SPEAKS = 0.05
"""Share of its cost from which cache breaks are named."""


@dataclass(frozen=True, slots=True)
class CostPeak:
    """The most expensive part of a range: sentences that say what it cost and why, the session
    that cost most, and where its sessions and cache breaks are listed."""

    title: str
    what: str
    why: str
    session: Session
    session_cost: str
    session_why: str
    sessions: int
    url: str
    breaks: str
    breaks_url: str


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
        f"Sessions that ended {_named(period)} cost {_cost(cost, part)}, "
        f"{finely(cost / made.whole.of['cost'])} of the range",
        _why(part, rest, found.cost_microusd, others, size),
        found,
        at_least(found.cost_microusd, bound=found.cost_is_bound),
        _session_why(
            found,
            spent_by_others(team, made.period, split, found),
            bound=made.whole.of["short"] > found.cost_is_bound,
        ),
        part.of["sessions"],
        sessions_url(period, split, sort="cost"),
        *_breaks(part, period, split),
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
        f"Its sessions cost {_cost(each, part)} each; those of the rest of the range "
        f"{_cost(each_usual, rest)}"
    )


def _cost(microusd: float, of: Sums) -> str:
    """A cost of these sessions, ≥ if that of some is only a lower bound."""
    return at_least(round(microusd), bound=bool(of.of["short"]))


def _session_why(found: Session, others: Spent, *, bound: bool) -> str:
    """What made a session expensive: its cost beside that of an average other of the range (a lower
    bound if `bound`), by the factor that explains most of the difference, and those that explain
    nearly as much.

    Cost is steps x prompt tokens a step x cost of a prompt token, output included.
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
    sizes = [one.prompt / one.steps for one in (mine, others)]
    times = {
        f"the steps ({mine.steps:,}, the others {theirs:,.0f} on average)": mine.steps / theirs,
        f"the prompt of a step ({tokens(round(sizes[0]))} tokens, the others "
        f"{tokens(round(sizes[1]))})": sizes[0] / sizes[1],
        f"the cost of a prompt token ({_rate(mine, others)})": (
            (mine.cost / mine.prompt) / (others.cost / others.prompt)
        ),
    }
    most = max(times.values())
    named = sorted((one for one in times if times[one] > 1), key=lambda one: -times[one])
    close = [one for one in named if log(times[one]) >= CLOSE * log(most)]
    many = others.sessions
    newest = "newest " if many >= COMPARED else ""
    over = f"the {newest}{many:,} other session{'' if many == 1 else 's'} with a known cost"
    usually = f"{at_least(round(usual), bound=bound)} on average"
    return (
        f"{said}. It cost {'up to ' if bound else ''}{mine.cost / usual:,.1f} times as much as "
        f"{over} ({usually}): {listed([f'{times[one]:,.1f} times {one}' for one in close])}"
    )


def _rate(mine: Spent, others: Spent) -> str:
    """The main reason why a prompt token of a session costs more than one of others: its kinds, at
    the usual ratios of list prices (a cache read costs 0.1 and a cache write 1.25 of an uncached
    token, output 5), or its model. Exact where a model's prices have these ratios."""
    prices = _price(mine) / _price(others)
    if prices > _weight(mine) / _weight(others):
        return f"its model: the same tokens cost {prices:.1f} times as much as in the others"
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


def _breaks(part: Sums, period: Period, split: Split) -> tuple[str, str]:
    """What cache breaks added to its cost, and where they are; empty if it is little."""
    causes = causes_in(part)
    paid = sum(one.microusd or 0 for one in causes)
    if not paid or paid < SPEAKS * part.of["cost"]:
        return "", ""
    bound = "at least " if any(one.priced < one.sessions for one in causes) else ""
    asked = query(split, **part_days(period.since, period.until))
    return (
        f"Cache breaks made {bound}{money(paid)} of its {_cost(part.of['cost'], part)}: "
        f"{_shares(causes)}",
        f"{reverse('cache')}{asked}",
    )


def _shares(causes: list[CauseSums]) -> str:
    """What of the cost of breaks was avoidable, with its main cause, what is unexplained, and what
    could not be avoided."""
    can = [one for one in causes if one.avoidable]
    avoidable = sum(one.microusd or 0 for one in can)
    unexplained = sum(one.microusd or 0 for one in causes if not one.known)
    other = sum(one.microusd or 0 for one in causes) - avoidable - unexplained
    said = [
        f"{money(avoidable)} was avoidable, {_main(can, avoidable)}" if avoidable else "",
        f"{money(unexplained)} is unexplained" if unexplained else "",
        f"{money(other)} was not avoidable" if other else "",
    ]
    return "; ".join(filter(None, said))


def _main(can: list[CauseSums], paid: int) -> str:
    """How much of the avoidable cost its largest cause made."""
    top = can[0].microusd or 0
    part = "all" if top == paid else "most" if 2 * top > paid else "the largest part"
    return f"{part} of it by “{can[0].name}”"


def _named(period: Period) -> str:
    """When the sessions ended: the whole cost of each counts then."""
    first, last = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (period.since, period.last))
    if period.size == HOUR:
        return f"on {day(first)} from {first:%H:%M} UTC"
    if period.size == DAY:
        return f"on {day(first)}"
    return f"from {day(first)} to {day(last)}"
