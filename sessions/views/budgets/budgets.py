"""Budgets: usage, approvals waiting, and projections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from compaction.budget.spending import Account, Amount, Projection
from sessions.access import actor_of, allowed, require, team_of, teams_of
from sessions.actions.budgets import approvals as asked
from sessions.actions.budgets import uses
from sessions.actions.budgets.budgets import budget_of_teams, put_budget, remove_budget
from sessions.actions.demo.demo_live import shown_budgets
from sessions.figures import UNKNOWN, money, tokens
from sessions.importers.delivered.delivered import Unacceptable
from sessions.models import Approval, Budget, Session, Team, Use
from sessions.models.budgets.spent import DAYS, projection_of
from sessions.views.budgets.budget_form import BudgetForm, as_shown
from sessions.views.web.demo_notice import demo_notice
from sessions.views.web.filters import list_version
from sessions.views.web.pages import Link, Page

USES = 20
"""Most uses shown per budget, fullest first."""

GAUGE = 1000
"""Width of a gauge, in units."""

DECIDED = 20
"""Most decisions shown, newest first."""


@dataclass(frozen=True, slots=True)
class BudgetGauge:
    """One use as a gauge of `GAUGE` units, with `reserved` after `used`.

    `known` is False if its share is unknown, because calls had no price.
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
    """By unit: used, reserved, limit including grants, granted."""


def shown(use: Use) -> BudgetGauge:
    """A use as the page shows it; the gauge uses its scarcer unit."""
    account, row = use.account, uses.describe_use(use)
    taken = account.share()
    used = Amount(account.used.tokens, account.used.microusd)
    whole = max(taken, 1.0) if taken else 1.0
    unpriced = row["limit"]["microusd"] is not None and uses.has_unpriced(use)
    mine = _share_of(used, account.limits())
    return BudgetGauge(
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
    """Format the figures of a use; unpriced calls make its dollars unknown or a lower bound."""
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
    """A call waiting for approval, the state of its use, and the extra amount offered."""

    approval: Approval
    shown: BudgetGauge
    name: str
    more: int | None
    granted: str
    """The limit after granting, and after granting with the extra amount."""
    with_more: str


def waiting_in(team: Team) -> list[Waiting]:
    """Calls of a team waiting for approval, oldest first."""
    rows = asked.shown_approvals(team).filter(state=Approval.State.WAITING).order_by("created")
    made = []
    for row in rows:
        more = None if row.use.budget.tokens is None else row.use.budget.tokens // 4
        granted = row.use.account.grant(row.amount)
        offered = _limits(row.use.account.grant(row.amount, Amount(more))) if more else ""
        name = uses.called(row.use)
        made.append(Waiting(row, shown(row.use), name, more, _limits(granted), offered))
    return made


def _limits(account: Account) -> str:
    """An account's limits including grants, such as "62.5k tokens and $0.50"."""
    words = {"tokens": lambda most: f"{tokens(most)} tokens", "microusd": money}
    return " and ".join(words[unit](most) for unit, most in account.limits())


def near_limit(team: Team, running: Iterable[Session]) -> list[tuple[str, BudgetGauge]]:
    """Uses of running sessions that are near or over their limit, fullest first."""
    keys = {name for session in running for name in uses.keys_of(session).values() if name}
    limiting, now = shown_budgets(team), timezone.now()
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
    """List all budgets. POST creates or updates the one with that scope, name and period."""
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
    messages.success(request, f"The {made} was {'created' if created else 'changed'}.")
    return _back(team)


def _back(team: Team) -> HttpResponse:
    return redirect(f"{reverse('budgets')}?team={team.slug}")


def _page(
    request: HttpRequest, team: Team, form: BudgetForm | None = None, status: int = 200
) -> HttpResponse:
    version = list_version(request)  # before the rows: a change in between is announced again
    now = timezone.now()
    rows = [
        (row, [shown(use) for use in found[:USES]], len(found))
        for row in shown_budgets(team)
        for found in [uses.fullest(row, now)]
    ]
    chosen = _chosen(request, team)
    decided = asked.shown_approvals(team).exclude(state=Approval.State.WAITING)
    context: dict[str, Any] = {
        "section": "budgets",
        **demo_notice(request, team),
        "rows": rows,
        "waiting": waiting_in(team),
        "decided": [(row, uses.called(row.use)) for row in decided.order_by("-decided")[:DECIDED]],
        **_projected(projection_of(team, int(now.timestamp() * 1000))),
        "days": DAYS,
        "may": allowed(request, team, "accept"),
        "form": form or BudgetForm(initial=as_shown(chosen) if chosen else None),
        "chosen": chosen,
        "version": version,
        "gauge_width": GAUGE,
    }
    return render(request, "budgets/budgets.html", context, status=status)


def _projected(found: Projection | None) -> dict[str, Any]:
    """A projection with tokens and micro-dollars per call, session, day and month."""
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
    """The budget to prefill the form with."""
    try:
        named = UUID(request.GET.get("change", ""))
    except ValueError:
        return None
    return budget_of_teams([team], named)


@require_POST
def remove(request: HttpRequest, budget_id: UUID) -> HttpResponse:
    """Delete a budget."""
    found = budget_of_teams(teams_of(request), budget_id)
    if found is None:
        raise Http404("no such budget")
    require(request, found.team, "accept")
    messages.success(request, f"The {found} was removed.")
    remove_budget(found, actor_of(request))
    return _back(found.team)


@require_POST
def decide(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Grant or refuse a waiting call; returns to the page of the form."""
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
        messages.warning(request, f"Someone else already decided about the {named}.")
    else:
        limit = _limits(decided.use.account)
        yes = f"Approved. The limit of the {named} is now {limit}."
        messages.success(request, yes if granted else f"Refused: {named}.")
    to = "live" if request.POST.get("to") == "live" else "budgets"
    return redirect(f"{reverse(to)}?team={team.slug}")


PAGES = (
    Page(
        route="budgets/",
        query=("change",),
        view=budgets,
        name="budgets",
        needs={"POST": "accept"},
        link=Link(85, "Budgets", "budgets", "g b", "budgets", "Manage"),
        about="limits, spending, projection",
    ),
    Page(
        route="budgets/<uuid:budget_id>/remove/",
        view=remove,
        name="budget_remove",
        needs={"POST": "accept"},
    ),
    Page(
        route="budgets/approvals/<uuid:approval_id>/",
        view=decide,
        name="approval_decide",
        needs={"POST": "accept"},
    ),
)
