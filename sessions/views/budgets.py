"""Budgets: how each stands, what waits for a person, what days like these come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from compaction.spending import Account, Amount, Projection
from sessions.actions import approvals as asked
from sessions.actions import uses
from sessions.actions.budgets import budget_of_teams, budgets_of, put_budget, remove_budget
from sessions.api.access import actor_of, allowed, require, team_of, teams_of
from sessions.importers.delivered import Unacceptable
from sessions.models import Approval, Budget, Session, Team, Use
from sessions.models.spent import DAYS, projection_of
from sessions.templatetags.figures import UNKNOWN, money, tokens
from sessions.views.budget_form import BudgetForm, as_shown
from sessions.views.filters import list_version
from sessions.views.said import said, say

USES = 20
"""Uses of one budget that the page shows: the fullest."""

GAUGE = 1000
"""Units of a gauge's width."""

DECIDED = 20
"""Decisions that the page shows, the newest."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One use as a gauge of `GAUGE` units: `reserved` comes after `used`.

    `known` tells whether its share is: dollars are not, where calls had no price.
    """

    use: Use
    state: str
    share: float
    delay_ms: int
    used: int
    reserved: int
    warn: int
    known: bool
    figures: tuple[tuple[str, str, str, str], ...]
    """By unit: used, reserved, the limit with what was granted, granted."""


def shown(use: Use) -> Shown:
    """A use as the page shows it; its scarcer unit makes the gauge."""
    account, row = use.account, uses.told(use)
    taken = account.share()
    used = Amount(account.used.tokens, account.used.microusd)
    whole = max(taken, 1.0) if taken else 1.0
    unpriced = row["limit"]["microusd"] is not None and uses.has_unpriced(use)
    mine = _share_of(used, account.limits())
    return Shown(
        use,
        row["state"],
        taken,
        row["delay_ms"],
        round(GAUGE * mine / whole),
        round(GAUGE * max(0.0, taken - mine) / whole),
        round(GAUGE * account.warn / whole),
        not unpriced or bool(taken),
        tuple(_figures(use, unpriced)),
    )


def _share_of(amount: Amount, limits: Iterable[tuple[str, int]]) -> float:
    return max((getattr(amount, unit) / most if most else 1.0 for unit, most in limits), default=0)


def _figures(use: Use, unpriced: bool) -> Iterable[tuple[str, str, str, str]]:
    """`unpriced` calls make what is used of dollars unknown, or a lower bound."""
    account = use.account
    for unit, limit in account.limits():
        write = tokens if unit == "tokens" else money
        parts = (account.used, account.reserved, account.extra)
        used, reserved, extra = (getattr(part, unit) for part in parts)
        said = write(used)
        if unit == "microusd" and unpriced:
            said = f"{said} at least" if used else UNKNOWN
        yield (
            said,
            write(reserved) if reserved else "",
            write(limit),
            (write(extra) if extra else ""),
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for a person, how its use stands, and what a yes offers beyond it."""

    approval: Approval
    shown: Shown
    name: str
    more: int | None
    granted: str
    """What the limit becomes by a yes, and with the offered more."""
    with_more: str


def waiting_in(team: Team) -> list[Waiting]:
    """What waits in a team, the oldest first."""
    rows = asked.approvals_of([team]).filter(state=Approval.State.WAITING).order_by("created")
    made = []
    for row in rows:
        more = None if row.use.budget.tokens is None else row.use.budget.tokens // 4
        granted = row.use.account.grant(row.amount)
        offered = _limits(row.use.account.grant(row.amount, Amount(more))) if more else ""
        name = uses.called(row.use)
        made.append(Waiting(row, shown(row.use), name, more, _limits(granted), offered))
    return made


def _limits(account: Account) -> str:
    """What an account may spend, grants included: "62.5k tokens and $0.50"."""
    words = {"tokens": lambda most: f"{tokens(most)} tokens", "microusd": money}
    return " and ".join(words[unit](most) for unit, most in account.limits())


def near_limit(team: Team, running: Iterable[Session]) -> list[tuple[str, Shown]]:
    """Uses by sessions that run now which are near their limit or beyond it, the fullest first."""
    keys = {name for session in running for name in uses.keys_of(session).values() if name}
    limiting, now = budgets_of(team), timezone.now()
    held = uses.in_force(limiting)
    found = [
        (uses.called(use), shown(use))
        for row in limiting
        if row.pk in held
        for use in uses.fullest(row, now)
        if use.key in keys and use.account.state() != "ok"
    ]
    return sorted(found, key=lambda one: -one[1].share)[:USES]


@require_http_methods(["GET", "HEAD", "POST"])
def budgets(request: HttpRequest) -> HttpResponse:
    """All budgets. POST makes one, or changes the one of that scope, name and period."""
    team = team_of(request)
    if request.method != "POST":
        return _page(request, team)
    require(request, team, "accept")
    given = BudgetForm(request.POST)
    if not given.is_valid():
        return _page(request, team, given, status=422)
    try:
        made, created = put_budget(team, given.fields_wanted(), actor_of(request))
    except Unacceptable as error:
        field = error.pointer.removeprefix("/")
        problem = f"This {error.problem}."
        given.add_error(field if field in given.fields else None, problem)
        return _page(request, team, given, status=422)
    say(request, f"The {made} is {'made' if created else 'changed'}.")
    return _back(team)


def _back(team: Team) -> HttpResponse:
    return redirect(f"{reverse('budgets')}?team={team.slug}")


def _page(
    request: HttpRequest, team: Team, form: BudgetForm | None = None, status: int = 200
) -> HttpResponse:
    now = timezone.now()
    rows = [
        (row, [shown(use) for use in found[:USES]], len(found))
        for row in budgets_of(team)
        for found in [uses.fullest(row, now)]
    ]
    chosen = _chosen(request, team)
    decided = asked.approvals_of([team]).exclude(state=Approval.State.WAITING)
    context: dict[str, Any] = {
        "section": "budgets",
        "team": team,
        "rows": rows,
        "waiting": waiting_in(team),
        "decided": [(row, uses.called(row.use)) for row in decided.order_by("-decided")[:DECIDED]],
        **_projected(projection_of(team, int(now.timestamp() * 1000))),
        "days": DAYS,
        "may": allowed(request, team, "accept"),
        "form": form or BudgetForm(initial=as_shown(chosen) if chosen else None),
        "chosen": chosen,
        "said": said(request),
        "version": list_version(request),
        "gauge_width": GAUGE,
    }
    return render(request, "budgets/budgets.html", context, status=status)


def _projected(found: Projection | None) -> dict[str, Any]:
    """A projection with its tokens and micro-dollars a call, a session, a day and a month."""
    if found is None:
        return {"projection": None}
    call, cost = found.tokens_per_call, found.microusd_per_call
    calls = found.calls_per_session
    sides = {
        "call": (call, cost),
        "session": (call * calls, None if cost is None else cost * calls),
        "day": (found.tokens_a_day, found.microusd_a_day),
        "month": (found.tokens_a_month, found.microusd_a_month),
    }
    whole = {
        name: tuple(None if value is None else round(value) for value in both)
        for name, both in sides.items()
    }
    return {"projection": found, "projected": whole}


def _chosen(request: HttpRequest, team: Team) -> Budget | None:
    """The budget whose values the form begins with."""
    try:
        named = UUID(request.GET.get("change", ""))
    except ValueError:
        return None
    return budget_of_teams([team], named)


@require_POST
def remove(request: HttpRequest, budget_id: UUID) -> HttpResponse:
    """Takes a budget away."""
    found = budget_of_teams(teams_of(request), budget_id)
    if found is None:
        raise Http404("no such budget")
    require(request, found.team, "accept")
    say(request, f"The {found} is removed.")
    remove_budget(found, actor_of(request))
    return _back(found.team)


@require_POST
def decide(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Says yes or no to a call that waits; goes back to the page that asked."""
    found = asked.approvals_of(teams_of(request)).filter(pk=approval_id).first()
    if found is None:
        raise Http404("no such approval")
    team = found.use.budget.team
    require(request, team, "accept")
    granted = request.POST.get("decision") == "grant"
    typed = request.POST.get("more", "").strip()
    more = int(typed) if typed.isascii() and typed.isdecimal() and len(typed) < 15 else 0
    named = uses.called(found.use)
    try:
        decided = asked.decide(
            found.pk, actor_of(request), timezone.now(), granted=granted, more=Amount(more)
        )
    except asked.CannotDecide:
        say(request, f"Somebody decided about the {named} before.")
    else:
        limit = _limits(decided.use.account)
        yes = f"The {named} may go on; its limit is {limit} now."
        say(request, yes if granted else f"The {named} was told no.")
    to = "live" if request.POST.get("to") == "live" else "budgets"
    return redirect(f"{reverse(to)}?team={team.slug}")
