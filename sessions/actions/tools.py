"""Tools: a graph is set, uses enable what depends on them, and contexts offer what is enabled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.db import transaction

from compaction import tokens
from compaction.budget import Budget, standing
from compaction.render import mask
from compaction.tools.document import InvalidGraph, document_of, graph_of
from compaction.tools.graph import ToolGraph, restored, stored
from compaction.wire import WireBlock
from sessions.actions import audit
from sessions.actions.folds import tell
from sessions.actions.openings import ending_with
from sessions.actions.served import Plan
from sessions.models import ServedContext, Session
from sessions.models import ToolGraph as Row
from sessions.models.tooling import (
    Tooling,
    sizes,
    tool_name,
    tooling,
    tooling_at,
    tooling_then,
    tools_in,
)

__all__ = ["InvalidGraph", "Offer", "caught_up", "offer", "set_graph"]


def set_graph(session: Session, document: Any, actor: audit.Actor = audit.COMMAND) -> Row:
    """Set what the session's tools need, from the next call on; the one that holds where it says
    the same already. What was enabled stays. Raises InvalidGraph."""
    graph = graph_of(document)
    with transaction.atomic():
        locked = Session.objects.select_for_update().get(pk=session.pk)
        known = tooling(locked)
        if known is not None and known.graph == graph:
            return known.row
        row = _next(locked, graph, known)
        detail = {"number": row.number, "tools": len(graph.needs), "states": len(graph.states)}
        audit.note(locked.team, actor, "tools.set", locked.external_id, **detail)
        tell(locked)
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
        uses = session.blocks.filter(type="tool_use").order_by("position")
        for tool, step in uses.values_list("tool", "born"):
            enabling.use(tool, step)
    enabling.register(graph, row.step)
    row.fold, row.taken = stored(enabling), session.block_count
    row.save()
    return row


def caught_up(session: Session) -> Tooling | None:
    """The session's graph up to what is stored now, which is kept, so that the next one reads only
    what is new; None without a graph."""
    found = tooling(session)
    if found is not None and found.taken > found.row.taken:
        rows = Row.objects.filter(pk=found.row.pk, taken__lt=found.taken)
        rows.update(taken=found.taken, fold=stored(found.enabling))
    return found


@dataclass(frozen=True, slots=True)
class Offer:
    """What of the defined tools a context offers: those `listed`, and of these those `allowed`;
    `left_out` are tokens of definitions that are not sent. `words` tell the allowed ones where the
    provider takes no mask."""

    tooling: Tooling
    state: str
    listed: tuple[str, ...]
    allowed: tuple[str, ...]
    left_out: int
    words: str = ""

    def choice(self, body: dict[str, Any], format: str) -> Any:
        """`tool_choice` for a rendered context; None where there is nothing to say."""
        if format == "openai":
            return mask.openai_choice(body.get("tools", []), self.allowed)
        if format == "anthropic":
            return mask.anthropic_choice(body.get("tools", []), self.allowed)
        return None


def offer(
    plan: Plan, wires: dict[str, WireBlock], format: str, served: ServedContext | None = None
) -> tuple[Plan, Offer | None]:
    """A plan with the tools that its step offers, and what these are; None without a graph.

    Shortens the list in `wires`. `served` is the context of which the plan is made again: what it
    offered then is counted in the plan already.
    """
    step = plan.retry_of or plan.step
    found = tooling_then(served) if served is not None else _at(plan.session, step)
    setup = next((one for one in reversed(plan.blocks) if one.type == "tools"), None)
    if found is None or setup is None:
        return plan, None
    wire = wires[setup.id]
    counted = sizes(wire)
    listed = found.enabling.listed(list(counted), step)
    allowed = [one for one in listed if found.enabling.allows(one, step)]
    state = found.enabling.state_at(step)
    by_name = {tool_name(tool): tool for tool in reversed(tools_in(wire))}
    wires[setup.id] = {**wire, "tools": [by_name[name] for name in listed]}
    out = set(counted).difference(listed)
    left_out = sum(plan.session.scaled(counted[one]) for one in out)
    masked = format in ("anthropic", "pairs") and len(allowed) < len(listed) and bool(allowed)
    words = mask.words(allowed, state) if masked else ""
    made = Offer(found, state, tuple(listed), tuple(allowed), left_out, words)
    more = plan.session.scaled(tokens.count(words)) if words else 0
    shown = replace(plan, ending=ending_with(plan.ending, words, more), tools=found.row)
    return (shown if served is not None else _counted(shown, more - left_out)), made


def _at(session: Session, step: int) -> Tooling | None:
    """The graph at a step: the newest one knows since when each tool is enabled."""
    found = caught_up(session)
    return found if found is None or found.row.step <= step else tooling_at(session, step)


def _counted(plan: Plan, more: int) -> Plan:
    """The plan, with so many tokens more in its prompt."""
    now = plan.standing
    budget = Budget(now.window, now.window - now.room, trigger=now.trigger, target=now.target)
    used, counted = max(now.used + more, 0), max(now.counted + more, 0)
    return replace(plan, standing=standing(budget, used, counted))
