"""Tool graphs: set a graph, and enable tools by use."""

from __future__ import annotations

from typing import Any

from django.db import transaction

from compaction.tools import read_tool
from compaction.tools.document import InvalidGraph, document_of, graph_of
from compaction.tools.graph import ToolGraph, restored, stored
from sessions.actions.accounts import audit
from sessions.actions.web.changed import publish
from sessions.models import Session
from sessions.models import ToolGraph as Row
from sessions.models.tools.tooling import Tooling, tooling

__all__ = ["InvalidGraph", "caught_up", "set_graph"]


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
