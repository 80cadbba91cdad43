"""The managed context that a live agent sends to its model, and what was taken out of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router

from compaction import render
from compaction.context import Block
from compaction.wire import WireBlock
from sessions.actions.served import (
    LONGEST_WAIT,
    NoSuchStep,
    Plan,
    catch_up,
    hand_out,
    plan_at,
    plan_of,
)
from sessions.api import incoming, shapes
from sessions.api.access import may_write, session_of
from sessions.api.answers import told
from sessions.api.problems import Refusal
from sessions.models import ServedContext, Session
from sessions.models.values import wire_blocks

router = Router(tags=["Context"])

Format = Literal["anthropic", "openai", "blocks"]


@router.get("sessions/{path:session_id}/context", response=shapes.Context, url_name="context")
def context(
    request: HttpRequest,
    session_id: str,
    format: Format = Query("anthropic", description="whose form it has"),
    at: int | None = Query(
        None,
        ge=1,
        le=incoming.BIGGEST,
        description="as it was at this step; else for the next call",
    ),
    wait: float = Query(
        0, ge=0, le=LONGEST_WAIT, description="seconds to wait for a summary that is being written"
    ),
    breakpoints: bool = Query(True, description="place cache_control (Anthropic's form only)"),
    context_id: str = Query("", description="the very context that was handed out under this id"),
) -> HttpResponse:
    """Gives the context to send to the model now: `system`, `tools` and `messages` as they are.

    Report `context_id` with the usage of the call. Whoever may not write gets the same context
    with a `context_id` of null: it is not recorded as sent.
    """
    session = session_of(request, session_id)
    plan = _plan(session, at, wait, context_id)
    handed = context_id or (hand_out(plan, format).pk if may_write(request) else None)
    return told(
        {
            "context_id": handed,
            "format": format,
            "step": plan.step,
            "revision": plan.revision,
            "seq": plan.seq,
            "tokens": plan.standing.used,
            "budget": asdict(plan.standing),
            "missing": list(plan.missing),
            "recited": plan.ending.tokens,
            **_rendered(plan, format, breakpoints=breakpoints),
        }
    )


def _plan(session: Session, at: int | None, wait: float, context_id: str) -> Plan:
    if context_id:
        served = (
            None
            if "\x00" in context_id
            else ServedContext.objects.filter(run__session=session, pk=context_id).first()
        )
        if served is None:
            raise Http404("no such context")
        return plan_of(served)
    if at is None:
        return catch_up(session, wait=wait)
    try:
        return plan_at(session, at)
    except NoSuchStep as error:
        raise Refusal(422, "No such step", str(error), field="?at") from None


def _rendered(plan: Plan, form: Format, *, breakpoints: bool) -> dict[str, object]:
    wires = wire_blocks(plan.session, plan.blocks)

    def wire_of(block: Block) -> WireBlock:
        return wires[block.id]

    if form == "openai":
        return render.openai(plan.blocks, wire_of, plan.ending)
    if form == "blocks":
        return render.as_blocks(plan.blocks, wire_of, plan.ending)
    # Always there: it may be sent as it is, empty or not.
    parts: dict[str, object] = {"system": [], "tools": []}
    made = render.anthropic(plan.blocks, wire_of, plan.ending, breakpoints=breakpoints)
    return parts | made
