"""Tools of a session: what each needs, enabled since when and by what, and what is likely next."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from sessions.actions.tools import InvalidGraph, caught_up, set_graph
from sessions.api import incoming, tool_shapes
from sessions.api.access import actor_of, may_write, session_of
from sessions.api.answers import told
from sessions.api.bodies import value_of
from sessions.api.problems import Refusal
from sessions.models import Session
from sessions.models.tool_use import ToolUse, tool_use

router = Router(tags=["Tools"])


@router.get("sessions/{path:session_id}/tools", response=tool_shapes.ToolsTold, url_name="tools")
def tools(request: HttpRequest, session_id: str) -> HttpResponse:
    """Tells which tools are enabled and allowed at the next call, since when and by what.

    Without a graph it tells what was used, and which tool is likely next.
    """
    session = session_of(request, session_id)
    if may_write(request):
        caught_up(session)
    return told(_told(tool_use(session)))


@router.put("sessions/{path:session_id}/tools", response=tool_shapes.ToolsTold, url_name="tools")
def put(request: HttpRequest, session_id: str, wanted: incoming.ToolsWanted) -> HttpResponse:
    """Sets what the session's tools need, in place of what was said before; from the next call on.

    The same request may be sent any number of times. Tools may be added at any time; what is
    enabled stays enabled. 422 for tools that wait for each other: the problem names their path.
    """
    session: Session = session_of(request, session_id)
    try:
        set_graph(session, value_of(request), actor_of(request))
    except InvalidGraph as error:
        title = "Tools wait for each other" if "→" in error.problem else "No graph of tools"
        detail = f"{error.problem[:1].upper()}{error.problem[1:]}."
        raise Refusal(422, title, detail, field=error.pointer) from None
    return told(_told(tool_use(session)))


def _told(found: ToolUse) -> dict[str, Any]:
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
    }
