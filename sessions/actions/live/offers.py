"""Offers: the tools that a context lists and allows at its step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compaction import tokens
from compaction.budget.budget import ContextLimits, standing
from compaction.context.wire import WireBlock
from compaction.render import mask
from sessions.actions.live.managed import Plan
from sessions.actions.memory.openings import ending_with
from sessions.actions.tools.graphs import caught_up
from sessions.models import ManagedContext, Session
from sessions.models.tools.tooling import (
    Tooling,
    sizes,
    tool_name,
    tooling_at,
    tooling_then,
    tools_in,
)


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools offered by a context: those `listed`, and among these those `allowed`; `left_out`
    are tokens of omitted definitions. `words` names the allowed ones for providers without a
    mask."""

    tooling: Tooling
    state: str
    listed: tuple[str, ...]
    allowed: tuple[str, ...]
    left_out: int
    words: str = ""

    def choice(self, body: dict[str, Any], format: str) -> Any:
        """The `tool_choice` of a rendered context; None if not needed."""
        if format == "openai":
            return mask.openai_choice(body.get("tools", []), self.allowed)
        if format == "anthropic":
            return mask.anthropic_choice(body.get("tools", []), self.allowed)
        return None


def offer(
    plan: Plan, wires: dict[str, WireBlock], format: str, managed: ManagedContext | None = None
) -> tuple[Plan, Offer | None]:
    """A plan with the tools offered at its step, and the offer; None without a graph.

    Shortens the list in `wires`. `managed` is the context being reproduced, whose offer is already
    included in the plan's count.
    """
    step = plan.retry_of or plan.step
    found = tooling_then(managed) if managed is not None else _at(plan.session, step)
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
    return (shown if managed is not None else _counted(shown, more - left_out)), made


def _at(session: Session, step: int) -> Tooling | None:
    """The graph at a step: the newest one records when each tool was enabled."""
    found = caught_up(session)
    return found if found is None or found.row.step <= step else tooling_at(session, step)


def _counted(plan: Plan, more: int) -> Plan:
    """The plan with `more` tokens added to its prompt."""
    now = plan.standing
    budget = ContextLimits(
        now.window, now.window - now.room, trigger=now.trigger, target=now.target
    )
    used, counted = max(now.used + more, 0), max(now.counted + more, 0)
    return replace(plan, standing=standing(budget, used, counted))
