"""Tool graphs: set a graph, enable tools by use, and leave tools out from habits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction

from compaction.tools import memory_tool, read_tool
from compaction.tools.document import MOST_TOOLS, InvalidGraph, document_of, graph_of, is_name
from compaction.tools.graph import OWN_USE, ToolGraph, restored, stored
from compaction.tools.habits import only
from compaction.tools.listed import each, tool_name, tools_in
from sessions.actions.accounts import audit
from sessions.actions.web.changed import publish
from sessions.models import Session
from sessions.models import ToolGraph as Row
from sessions.models.tools.tool_use import agent_habits
from sessions.models.tools.tooling import Tooling, tooling
from sessions.models.tools.unused import ENOUGH

__all__ = ["InvalidGraph", "caught_up", "leave_out_unused", "set_graph"]

OURS = frozenset({read_tool.NAME, memory_tool.NAME})
"""Tools that a session may need although no habit shows it: contexts refer to them."""


def set_graph(session: Session, document: Any, actor: audit.Actor = audit.COMMAND) -> Row:
    """Set the session's tool graph from the next call on; returns the current one if it is equal.
    Enabled tools stay enabled. Raises InvalidGraph."""
    graph = graph_of(document)
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        known = tooling(locked)
        if known is not None and known.graph == graph:
            return known.row
        row = _next(locked, graph, known)
        detail = {"number": row.number, "tools": len(graph.needs), "states": len(graph.states)}
        audit.note(locked.team, actor, "tools.set", locked.external_id, **detail)
        publish(locked)
    return row


def leave_out_unused(session: Session, given: Sequence[Any]) -> None:
    """Leave the tools out of a session's start that its agent's newest sessions did not use, if its
    policy says so; `given` is its list of tools.

    Decided once, so that the list stays a prefix of each later one. Tools that the session's graph
    names follow the graph. Does nothing with too few sessions, if the graph sends all tools, or if
    no tool would remain.
    """
    if (session.policy_document or {}).get("tools") != "habits" or not session.agent:
        return
    known = tooling(session)
    graph = known.graph if known is not None else ToolGraph()
    if graph.sends == "all" or (known is not None and known.row.learned_from is not None):
        return
    habits, learned_from = agent_habits(session)
    listed = tools_in({"tools": list(given)})
    parts = {tool_name(tool): {tool_name(one) for one in each([tool])} for tool in listed}
    kept = {*graph.needs, *OURS, *habits.uses}
    out = [name for name, own in parts.items() if not kept & {name, *own} and is_name(name)]
    out = out[: MOST_TOOLS - len(graph.needs)]
    if learned_from < ENOUGH or len(out) == len(parts):
        return
    needs = {**graph.needs, **dict.fromkeys(out, (OWN_USE,))}
    row = _next(session, replace(graph, needs=needs), known)
    row.learned_from = learned_from
    row.habits = only(habits, set().union(*parts.values())).stored()
    row.save(update_fields=["learned_from", "habits"])


def _next(session: Session, graph: ToolGraph, known: Tooling | None) -> Row:
    row = Row(
        session=session,
        number=known.row.number + 1 if known is not None else 1,
        document=document_of(graph),
        seq=session.message_count,
        step=session.step_count + 1,
    )
    if known is not None:
        enabling = known.enabling
    else:
        enabling = restored(ToolGraph(), {})
        calls = session.blocks.filter(type="tool_use").exclude(tool=read_tool.NAME)
        uses = calls.order_by("position")
        for tool, step in uses.values_list("tool", "born"):
            enabling.use(tool, step)
    enabling.register(graph, row.step)
    row.fold, row.taken = stored(enabling), session.block_count
    row.save()
    return row


def caught_up(session: Session) -> Tooling | None:
    """The session's tool graph with its state as of now, saved so that the next call reads only new
    rows; None without a graph."""
    found = tooling(session)
    if found is not None and found.taken > found.row.taken:
        rows = Row.objects.filter(pk=found.row.pk, taken__lt=found.taken)
        rows.update(taken=found.taken, fold=stored(found.enabling))
    return found
