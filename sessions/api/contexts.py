"""The managed context that a live agent sends to its model, and what was taken out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from compaction import render
from compaction.context import Block
from compaction.modalities import readable
from compaction.wire import WireBlock
from sessions.actions.approvals import Admission, admit
from sessions.actions.served import (
    LONGEST_WAIT,
    NoSuchStep,
    NothingFailed,
    Plan,
    catch_up,
    hand_out,
    plan_again,
    plan_at,
    plan_of,
)
from sessions.actions.tools import Offer, offer
from sessions.api import incoming, shapes
from sessions.api.access import may_write, session_of
from sessions.api.answers import told
from sessions.api.problems import Refusal, problem
from sessions.models import ServedContext, Session
from sessions.models.values import wire_blocks

router = Router(tags=["Context"])

Format = Literal["anthropic", "openai", "pairs", "blocks"]


@router.get(
    "sessions/{path:session_id}/context",
    response={200: shapes.Context, 402: shapes.OverBudget},
    url_name="context",
)
def context(
    request: HttpRequest,
    session_id: str,
    which: Query[incoming.ContextWanted],
    format: Format = Query("anthropic", description="whose form it has"),
    wait: float = Query(
        0, ge=0, le=LONGEST_WAIT, description="seconds to wait for a summary that is being written"
    ),
    breakpoints: bool = Query(True, description="place cache_control (Anthropic's form only)"),
) -> HttpResponse:
    """Gives the context to send to the model now: `system`, `tools` and `messages` as they are.

    Where the session has a graph of tools, `tools` are those of the step, and `tool_choice` is
    there where the provider takes a mask; `toolset` says which tools are listed and allowed.

    Report `context_id` with the usage of the call. Whoever may not write gets the same context
    with a `context_id` of null: it is not recorded as sent. 402 where a budget that is hard, or
    asks for a person, has no room for its prompt and the output that is expected; the problem
    says so as a check would.
    """
    session = session_of(request, session_id)
    at, context_id = which.at, which.context_id
    served = _served(session, context_id) if context_id else None
    plan = plan_of(served) if served is not None else _plan(session, which, wait)
    wires = wire_blocks(plan.session, plan.blocks)
    plan, offered = offer(plan, wires, format, served)
    admission = _admission(request, plan) if not context_id and at is None else Admission(None)
    if admission.answer is not None:
        return over_budget(admission.answer)
    handed = context_id or (hand_out(plan, format).pk if may_write(request) else None)
    body = _rendered(plan, wires, format, breakpoints=breakpoints)
    choice = offered.choice(body, format) if offered is not None else None
    return told(
        {
            "context_id": handed,
            "format": format,
            "step": plan.step,
            "revision": plan.revision,
            "seq": plan.seq,
            "tokens": plan.standing.used,
            "budget": asdict(plan.standing),
            "budgets": list(admission.budgets),
            "missing": list(plan.missing),
            "recited": plan.ending.tokens,
            "retry_of": plan.retry_of,
            "toolset": _toolset(offered) if offered is not None else None,
            **({"tool_choice": choice} if choice is not None else {}),
            **body,
        }
    )


def _admission(request: HttpRequest, plan: Plan) -> Admission:
    """What the budgets say; of a context that goes to a model alone."""
    if not may_write(request):
        return Admission(None)
    return admit(plan.session, plan.standing.used, plan.step, timezone.now())


def over_budget(answer: dict[str, Any]) -> HttpResponse:
    """402, which clients do not send again by themselves: waiting alone makes no room."""
    rest = {name: answer[name] for name in ("require_approval", "approval", "budgets")}
    return problem(402, "Over budget", answer["reason"], **rest)


def _toolset(offered: Offer) -> dict[str, object]:
    return {
        "number": offered.tooling.row.number,
        "state": offered.state,
        "listed": list(offered.listed),
        "allowed": list(offered.allowed),
        "left_out_tokens": offered.left_out,
    }


def _served(session: Session, context_id: str) -> ServedContext:
    rows = ServedContext.objects.select_related("run__session", "tools__session")
    found = (
        None if "\x00" in context_id else rows.filter(run__session=session, pk=context_id).first()
    )
    if found is None:
        raise Http404("no such context")
    return found


def _plan(session: Session, which: incoming.ContextWanted, wait: float) -> Plan:
    field = "?retry_of" if which.retry_of is not None else "?at"
    if which.at is not None and which.retry_of is not None:
        detail = "Name a step as it was, or one to do again."
        raise Refusal(422, "Which context?", detail, field=field)
    try:
        if which.retry_of is not None:
            return plan_again(session, which.retry_of)
        return catch_up(session, wait=wait) if which.at is None else plan_at(session, which.at)
    except NothingFailed as error:
        raise Refusal(422, "Nothing failed", str(error), field=field) from None
    except NoSuchStep as error:
        raise Refusal(422, "No such step", str(error), field=field) from None


def _rendered(
    plan: Plan, wires: Mapping[str, WireBlock], form: Format, *, breakpoints: bool
) -> dict[str, Any]:
    # Who renders blocks alone decides alone.
    shown = wires if form == "blocks" else readable(plan.session.model, wires)

    def wire_of(block: Block) -> WireBlock:
        return shown[block.id]

    if form == "openai":
        return render.openai(plan.blocks, wire_of, plan.ending)
    if form == "pairs":
        return render.pairs(plan.blocks, wire_of, plan.ending)
    if form == "blocks":
        return render.as_blocks(plan.blocks, wire_of, plan.ending)
    # Always there: it may be sent as it is, empty or not.
    parts: dict[str, Any] = {"system": [], "tools": []}
    made = render.anthropic(
        plan.blocks, wire_of, plan.ending, breakpoints=breakpoints, lifetime=plan.lifetime
    )
    return parts | made
