"""The managed context that a live agent sends to its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query, Router

from compaction import render
from compaction.context.blocks import Block
from compaction.context.wire import WireBlock
from compaction.render.content import readable
from sessions.access import may_write, session_of
from sessions.actions.budgets.approvals import Admission, admit
from sessions.actions.live.managed import (
    LONGEST_WAIT,
    NoSuchStep,
    NothingFailed,
    Plan,
    catch_up,
    plan_again,
    plan_at,
    plan_of,
    record_context,
)
from sessions.actions.live.offers import Offer, offer
from sessions.api.budgets.shapes import OverBudgetOut
from sessions.api.live import shapes
from sessions.api.web.exchange import json_answer
from sessions.api.web.problems import Refusal, problem
from sessions.models import ManagedContext, Session
from sessions.models.record.values import wire_blocks

router = Router(tags=["Context"])

Format = Literal["anthropic", "openai", "pairs", "blocks"]


@router.get(
    "sessions/{path:session_id}/context",
    response={200: shapes.ContextOut, 402: OverBudgetOut},
    url_name="context",
)
def context(
    request: HttpRequest,
    session_id: str,
    which: Query[shapes.ContextIn],
    format: Format = Query("anthropic", description="provider format"),
    wait: float = Query(
        0, ge=0, le=LONGEST_WAIT, description="seconds to wait for a summary in progress"
    ),
    breakpoints: bool = Query(True, description="place cache_control (Anthropic's form only)"),
) -> HttpResponse:
    """Get the context to send to the model now: `system`, `tools` and `messages`, ready to use.

    With a tool graph, `tools` are those of the step, and `tool_choice` is set if the provider
    supports a mask; `toolset` says which tools are listed and allowed. Report `context_id` with the
    usage of the call. Requesters without write access get a `context_id` of null: the context is
    not recorded as sent. 402 if a hard budget, or one that needs approval, has no room for the
    prompt and the expected output; the problem has the fields of a budget check.
    """
    session = session_of(request, session_id)
    at, context_id = which.at, which.context_id
    managed = _managed(session, context_id) if context_id else None
    plan = plan_of(managed) if managed is not None else _plan(session, which, wait)
    wires = wire_blocks(plan.session, plan.blocks)
    plan, offered = offer(plan, wires, format, managed) if plan.tooled else (plan, None)
    goes_out = not context_id and at is None and plan.budgeted
    admission = _admission(request, plan) if goes_out else Admission(None)
    if admission.answer is not None:
        return over_budget(admission.answer)
    handed = context_id or (record_context(plan, format).pk if may_write(request) else None)
    body = _rendered(plan, wires, format, breakpoints=breakpoints)
    choice = offered.choice(body, format) if offered is not None else None
    return json_answer(
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
    """The answer of the budgets; only for contexts that go to a model."""
    if not may_write(request):
        return Admission(None)
    return admit(plan.session, plan.standing.used, plan.step, timezone.now())


def over_budget(answer: dict[str, Any]) -> HttpResponse:
    """A 402 response, which clients do not retry automatically, because waiting alone does not
    help."""
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


def _managed(session: Session, context_id: str) -> ManagedContext:
    rows = ManagedContext.objects.select_related("run__session", "tools__session")
    found = (
        None if "\x00" in context_id else rows.filter(run__session=session, pk=context_id).first()
    )
    if found is None:
        raise Http404("no such context")
    return found


def _plan(session: Session, which: shapes.ContextIn, wait: float) -> Plan:
    field = "?retry_of" if which.retry_of is not None else "?at"
    if which.at is not None and which.retry_of is not None:
        detail = "Send either `at` or `retry_of`, not both."
        raise Refusal(422, "Ambiguous context", detail, field=field)
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
    # The caller renders blocks itself.
    shown = wires if form == "blocks" else readable(plan.session.model, wires)

    def wire_of(block: Block) -> WireBlock:
        return shown[block.id]

    if form == "openai":
        return render.openai(plan.blocks, wire_of, plan.ending)
    if form == "pairs":
        return render.pairs(plan.blocks, wire_of, plan.ending)
    if form == "blocks":
        return render.as_blocks(plan.blocks, wire_of, plan.ending)
    # Always present, so that they can be passed on even if empty.
    parts: dict[str, Any] = {"system": [], "tools": []}
    made = render.anthropic(
        plan.blocks, wire_of, plan.ending, breakpoints=breakpoints, ttl=plan.ttl
    )
    return parts | made
