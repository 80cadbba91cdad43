"""Tools of a session: requirements, when and by what they were enabled, and likely next tools."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from sessions.access import actor_of, may_write, session_of
from sessions.actions.tools.graphs import InvalidGraph, caught_up, set_graph
from sessions.api.tools import shapes
from sessions.api.tools import shapes as tool_shapes
from sessions.api.web.exchange import json_answer, value_of
from sessions.api.web.problems import Refusal
from sessions.models import Session
from sessions.models.tools.tool_use import ToolUse, tool_use

router = Router(tags=["Tools"])


@router.get("sessions/{path:session_id}/tools", response=tool_shapes.ToolsOut, url_name="tools")
def tools(request: HttpRequest, session_id: str) -> HttpResponse:
    """Get the tools of the next call: those enabled and allowed, and what enabled them.

    Without a graph: the tools used, and which is likely next.
    """
    session = session_of(request, session_id)
    if may_write(request):
        caught_up(session)
    return json_answer(_describe_tools(tool_use(session)))


@router.put("sessions/{path:session_id}/tools", response=tool_shapes.ToolsOut, url_name="tools")
def put(request: HttpRequest, session_id: str, wanted: shapes.ToolsIn) -> HttpResponse:
    """Set the session's tool graph, which replaces the previous one from the next call on.

    Idempotent. Tools may be added at any time; enabled tools stay enabled. 422 for circular
    requirements, with their path.
    """
    session: Session = session_of(request, session_id)
    try:
        set_graph(session, value_of(request), actor_of(request))
    except InvalidGraph as error:
        title = "Circular tool requirements" if "→" in error.problem else "Invalid tool graph"
        detail = f"{error.problem[:1].upper()}{error.problem[1:]}."
        raise Refusal(422, title, detail, field=error.pointer) from None
    return json_answer(_describe_tools(tool_use(session)))


def _describe_tools(found: ToolUse) -> dict[str, Any]:
    cost = found.cost
    return {
        "number": found.number,
        "graph": found.document,
        "step": found.step,
        "state": found.state,
        "enabled": [row.name for row in found.rows if row.enabled],
        "allowed": [row.name for row in found.rows if row.allowed],
        "mask": found.mask,
        "tools": [
            {
                "name": row.name,
                "needs": list(row.needs),
                "tokens": row.tokens,
                "enabled_at": row.since,
                "enabled_by": list(row.by),
                "uses": row.uses,
                "first_step": row.first,
                "failures": row.failures,
            }
            for row in found.rows
        ],
        "unused": found.unused,
        "likely": [{"tool": one.tool, "share": one.share} for one in found.likely],
        "tokens": {
            "all": found.tokens_all,
            "enabled": found.tokens_enabled,
            "left_out": found.tokens_left_out,
        },
        "list_cost": None
        if cost is None
        else {
            "left_out_tokens": cost.less,
            "changed_at": list(cost.changes),
            "rewritten_tokens": cost.rewritten,
            "saved_microusd": found.saved_microusd,
            "rewritten_microusd": found.rewritten_microusd,
            "basis": "estimated",
        },
        "definitions": _describe_definitions(found),
    }


def _describe_definitions(found: ToolUse) -> dict[str, Any] | None:
    use = found.definitions
    if not use.rows:
        return None
    used = {row.name for row in found.rows if row.uses}
    return {
        "tools": [
            {
                "tool": row.tool,
                "tokens": row.tokens,
                "calls": row.calls,
                "microusd": row.microusd if use.costs.priced else None,
                "used": row.tool in used,
            }
            for row in use.rows
        ],
        "tokens": use.tokens,
        "microusd": use.microusd,
        "unused_tokens": use.unused_tokens,
        "unused_microusd": use.unused_microusd,
        "basis": use.costs.basis,
        "deferred": [row.name for row in found.rows if row.deferred],
        "hidden_tokens": use.hidden_tokens,
        "hidden_microusd": use.hidden_microusd,
    }
