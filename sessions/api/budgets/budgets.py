"""Budgets: checks before calls, limits set by people, and approvals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Body, Query, Router

from compaction.budget.spending import Amount
from sessions.access import actor_of, require, session_of, team_of, team_to, teams_of
from sessions.actions.budgets import approvals as asked
from sessions.actions.budgets import spending, uses
from sessions.actions.budgets.budgets import (
    BudgetFields,
    budget_of_teams,
    put_budget,
    remove_budget,
)
from sessions.actions.budgets.reserved import release as release_reserved
from sessions.actions.demo.demo_live import shown_budgets
from sessions.actions.live.handing_out import next_call
from sessions.api.budgets import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once, fold_ready
from sessions.api.web.problems import Refusal
from sessions.importers.decoded import clean
from sessions.models import Approval, Budget

MOST_USES = 100
"""Maximum number of uses returned per budget, fullest first."""

ROWS_AT_ONCE = 200

router = Router(tags=["Budgets"])


@router.post(
    "sessions/{path:session_id}/budgets/check", response=shapes.Checked, url_name="budget_check"
)
@fold_ready
@done_once
def check(
    request: HttpRequest, session_id: str, wanted: shapes.CheckIn = Body(None)
) -> HttpResponse:
    """Check whether the next model call may be made, and reserve its estimated usage.

    Always 200: a refusal is an answer. Repeating `call` returns the same answer and reserves once.
    The call's usage, in `calls` or with the messages, settles the reservation.
    """
    session = session_of(request, session_id)
    wanted = wanted or shapes.CheckIn.model_validate({})
    asking = spending.PlannedCall(
        str(clean(wanted.call)), wanted.tokens, wanted.microusd, timedelta(seconds=wanted.seconds)
    )
    return json_answer(next_call.check(session, asking, timezone.now()))


@router.delete(
    "sessions/{path:session_id}/reservations", response=shapes.Released, url_name="reservations"
)
@done_once
def release(
    request: HttpRequest,
    session_id: str,
    call: str = Query(
        "", max_length=shapes.CALL_CHARS, description="your id of the call; omit to release all"
    ),
) -> HttpResponse:
    """Release reservations of calls that will not be made."""
    session = session_of(request, session_id)
    return json_answer({"released": release_reserved(session, str(clean(call)), timezone.now())})


# Budgets


def describe_budget(budget: Budget) -> dict[str, Any]:
    """A budget as JSON."""
    fields = ("scope", "name", "period", "tokens", "microusd", "mode", "warn", "active")
    return {
        "id": str(budget.pk),
        **{name: getattr(budget, name) for name in fields},
        "made_by": budget.made_by.username if budget.made_by else None,
        "uses": [
            uses.describe_use(use) for use in uses.fullest(budget, timezone.now())[:MOST_USES]
        ],
    }


@router.get("budgets", response=shapes.BudgetList, url_name="budgets")
def budgets(request: HttpRequest) -> HttpResponse:
    """List the team's budgets with their usage; the 100 fullest uses of each.

    Budgets of the demo only while the team has no other sessions.
    """
    return json_answer(
        {"budgets": [describe_budget(row) for row in shown_budgets(team_of(request))]}
    )


@router.put(
    "budgets",
    response={200: shapes.BudgetOut, 201: shapes.BudgetOut},
    url_name="budgets",
)
@done_once
def put(request: HttpRequest, wanted: shapes.BudgetIn) -> HttpResponse:
    """Set the budget of a scope, name and period; 201 if it is new.

    For people only: an agent must not raise its own limit.
    """
    team = team_to(request, "accept")
    fields = BudgetFields(**wanted.dict())
    made, created = put_budget(team, fields, actor_of(request))
    return json_answer(describe_budget(made), 201 if created else 200)


@router.delete("budgets/{uuid:budget_id}", response=shapes.BudgetOut, url_name="budget_remove")
def remove(request: HttpRequest, budget_id: UUID) -> HttpResponse:
    """Delete a budget, with its usage, and return it. For people only."""
    found = budget_of_teams(teams_of(request), budget_id)
    if found is None:
        raise Http404("no such budget")
    require(request, found.team, "accept")
    answer = json_answer(describe_budget(found))
    remove_budget(found, actor_of(request))
    return answer


# Approvals


def describe_approval(row: Approval) -> dict[str, Any]:
    """An approval as JSON."""
    return {
        "id": str(row.pk),
        "state": row.state,
        "session": str(row.session_id),
        "call": row.call,
        "asked": {"tokens": row.tokens, "microusd": row.microusd},
        "use": uses.describe_use(row.use),
        "created": row.created.isoformat(),
        "decided": row.decided.isoformat() if row.decided else None,
        "decided_by": row.decided_by.username if row.decided_by else None,
    }


@router.get("approvals", response=shapes.ApprovalList, url_name="approvals")
def approvals(
    request: HttpRequest,
    state: Literal["", "waiting", "granted", "refused"] = Query("", description="only this state"),
    limit: int = Query(50, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """List approvals, newest first."""
    rows = asked.approvals_of(teams_of(request))
    if state:
        rows = rows.filter(state=state)
    return json_answer(
        {"approvals": [describe_approval(row) for row in rows.order_by("-created")[:limit]]}
    )


def _approval(request: HttpRequest, approval_id: UUID) -> Approval:
    found = asked.approvals_of(teams_of(request)).filter(pk=approval_id).first()
    if found is None:
        raise Http404("no such approval")
    return found


@router.get("approvals/{uuid:approval_id}", response=shapes.ApprovalOut, url_name="approval")
def approval(request: HttpRequest, approval_id: UUID) -> HttpResponse:
    """Get an approval; agents poll it while they wait."""
    return json_answer(describe_approval(_approval(request, approval_id)))


@router.post("approvals/{uuid:approval_id}", response=shapes.ApprovalOut, url_name="approval")
@done_once
def decide(request: HttpRequest, approval_id: UUID, wanted: shapes.DecisionIn) -> HttpResponse:
    """Grant or refuse an approval. For people only; 409 if it was already decided."""
    found = _approval(request, approval_id)
    require(request, found.use.budget.team, "accept")
    more = Amount(wanted.tokens, wanted.microusd)
    try:
        asked.decide(found.pk, actor_of(request), timezone.now(), granted=wanted.granted, more=more)
    except asked.CannotDecide as error:
        raise Refusal(409, "Already decided", str(error)) from None
    return json_answer(describe_approval(_approval(request, approval_id)))
