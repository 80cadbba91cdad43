"""Budgets: checked before a call, set by people, and asked to be exceeded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Body, Query, Router

from compaction.spending import Amount
from sessions.actions import approvals as asked
from sessions.actions import spending, uses
from sessions.actions.budgets import (
    BudgetFields,
    budget_of_teams,
    budgets_of,
    put_budget,
    remove_budget,
)
from sessions.actions.reserved import release as release_reserved
from sessions.api import budget_shapes as shapes
from sessions.api.access import actor_of, require, session_of, team_of, team_to, teams_of
from sessions.api.answers import done_once, fold_ready, told
from sessions.api.problems import Refusal
from sessions.importers.decoded import clean
from sessions.models import Approval, Budget

MOST_USES = 100
"""Uses of one budget that are told: the fullest."""

ROWS_AT_ONCE = 200

router = Router(tags=["Budgets"])


@router.post(
    "sessions/{path:session_id}/budgets/check", response=shapes.Checked, url_name="budget_check"
)
@fold_ready
@done_once
def check(
    request: HttpRequest, session_id: str, wanted: shapes.CheckWanted = Body(None)
) -> HttpResponse:
    """Says whether the next model call may go out, and reserves what it may take.

    Always 200: a no is an answer. The same `call` again is answered the same, and reserved once.
    The call's usage settles it, in `calls` or with the messages.
    """
    session = session_of(request, session_id)
    wanted = wanted or shapes.CheckWanted.model_validate({})
    asking = spending.Wanted(
        str(clean(wanted.call)), wanted.tokens, wanted.microusd, timedelta(seconds=wanted.seconds)
    )
    return told(spending.check(session, asking, timezone.now()))


@router.delete(
    "sessions/{path:session_id}/reservations", response=shapes.Released, url_name="reservations"
)
@done_once
def release(
    request: HttpRequest,
    session_id: str,
    call: str = Query("", max_length=shapes.CALL_CHARS, description="your id of it; else all"),
) -> HttpResponse:
    """Gives back what calls had reserved that will not be made."""
    session = session_of(request, session_id)
    return told({"released": release_reserved(session, str(clean(call)), timezone.now())})


# Budgets


def budget_told(budget: Budget) -> dict[str, Any]:
    """A budget as the API tells it."""
    fields = ("scope", "name", "period", "tokens", "microusd", "mode", "warn", "active")
    return {
        "id": str(budget.pk),
        **{name: getattr(budget, name) for name in fields},
        "made_by": budget.made_by.username if budget.made_by else None,
        "uses": [uses.told(use) for use in uses.fullest(budget, timezone.now())[:MOST_USES]],
    }


@router.get("budgets", response=shapes.BudgetList, url_name="budgets")
def budgets(request: HttpRequest) -> HttpResponse:
    """Lists the team's budgets with what was taken of each; the fullest 100 uses."""
    return told({"budgets": [budget_told(row) for row in budgets_of(team_of(request))]})


@router.put(
    "budgets",
    response={200: shapes.BudgetTold, 201: shapes.BudgetTold},
    url_name="budgets",
)
@done_once
def put(request: HttpRequest, wanted: shapes.BudgetWanted) -> HttpResponse:
    """Sets the budget of that scope, name and period: 201 where there was none.

    For people alone: an agent must not raise its own limit.
    """
    team = team_to(request, "accept")
    fields = BudgetFields(**wanted.dict())
    made, created = put_budget(team, fields, actor_of(request))
    return told(budget_told(made), 201 if created else 200)


@router.delete("budgets/{uuid:budget_id}", response=shapes.BudgetTold, url_name="budget_remove")
def remove(request: HttpRequest, budget_id: UUID) -> HttpResponse:
    """Takes a budget away, with what was counted of it, and tells it this once. For people."""
    found = budget_of_teams(teams_of(request), budget_id)
    if found is None:
        raise Http404("no such budget")
    require(request, found.team, "accept")
    answer = told(budget_told(found))
    remove_budget(found, actor_of(request))
    return answer


# Approvals


def approval_told(row: Approval) -> dict[str, Any]:
    """An approval as the API tells it."""
    return {
        "id": str(row.pk),
        "state": row.state,
        "session": str(row.session_id),
        "call": row.call,
        "asked": {"tokens": row.tokens, "microusd": row.microusd},
        "use": uses.told(row.use),
        "created": row.created.isoformat(),
        "decided": row.decided.isoformat() if row.decided else None,
        "decided_by": row.decided_by.username if row.decided_by else None,
    }


@router.get("approvals", response=shapes.ApprovalList, url_name="approvals")
def approvals(
    request: HttpRequest,
    state: Literal["", "waiting", "granted", "refused"] = Query("", description="only those"),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """Lists what calls were asked to wait for, the newest first."""
    rows = asked.approvals_of(teams_of(request))
    if state:
        rows = rows.filter(state=state)
    return told({"approvals": [approval_told(row) for row in rows.order_by("-created")[:limit]]})


def _approval(request: HttpRequest, approval_id: UUID) -> Approval:
    found = asked.approvals_of(teams_of(request)).filter(pk=approval_id).first()
    if found is None:
        raise Http404("no such approval")
    return found


@router.get("approvals/{uuid:approval_id}", response=shapes.ApprovalTold, url_name="approval")
def approval(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Tells how one stands: what an agent asks again while it waits."""
    return told(approval_told(_approval(request, approval_id)))


@router.post("approvals/{uuid:approval_id}", response=shapes.ApprovalTold, url_name="approval")
@done_once
def decide(request: HttpRequest, approval_id: UUID, wanted: shapes.DecisionWanted) -> HttpResponse:
    """Says yes or no, for good. For people alone; 409 where somebody did before."""
    found = _approval(request, approval_id)
    require(request, found.use.budget.team, "accept")
    more = Amount(wanted.tokens, wanted.microusd)
    try:
        asked.decide(found.pk, actor_of(request), timezone.now(), granted=wanted.granted, more=more)
    except asked.CannotDecide as error:
        raise Refusal(409, "Decided before", str(error)) from None
    return told(approval_told(_approval(request, approval_id)))
