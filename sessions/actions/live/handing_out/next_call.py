"""The next call of a live agent: the tools it offers, its size, and whether budgets allow it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from compaction import tokens
from compaction.budget.budget import ContextLimits, standing
from compaction.context.blocks import Block
from compaction.context.edits import OWN_COMPACTIONS
from compaction.context.wire import WireBlock
from compaction.prices.binding import binds_thinking
from compaction.render import mask
from compaction.tools import read_tool
from compaction.tools.graph import OWN_USE
from compaction.tools.habits import OWN, WITHIN, Likely, habits_of, likely, read
from compaction.tools.listed import each, tool_name, tools_in
from sessions.actions.budgets.spending import PlannedCall, reserve
from sessions.actions.live.managed import Plan, catch_up
from sessions.actions.live.requests.pausing import refused_call
from sessions.actions.memory.received import ending_with
from sessions.actions.tools.graphs import caught_up
from sessions.models import ManagedContext, Revision, Run, Session
from sessions.models.record.values import wire_blocks
from sessions.models.tools.tool_use import LIKELY, newest_steps
from sessions.models.tools.tooling import (
    Tooling,
    sizes,
    tooling_at,
    tooling_then,
)
from sessions.models.web.statements import Statement, given_int, given_uuid


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools offered by a context: those `listed`, and among these those `allowed`; `left_out`
    are tokens of omitted definitions, `reasons` says why of each. `likely` may come next, by habits
    of the agent. `words` names the allowed ones for providers without a
    mask. If ours, `read_back` follows them, and is allowed wherever another tool is; an agent's own
    tool with that name is one like the others."""

    tooling: Tooling
    state: str
    listed: tuple[str, ...]
    allowed: tuple[str, ...]
    left_out: int
    words: str = ""
    read_back: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)
    likely: tuple[Likely, ...] = ()

    def choice(self, body: dict[str, Any], format: str) -> Any:
        """The `tool_choice` of a rendered context; None if not needed."""
        if format == "openai":
            ours = [read_tool.NAME] if self.allowed and self.read_back else []
            return mask.openai_choice(body.get("tools", []), [*self.allowed, *ours])
        if format == "anthropic":
            return mask.anthropic_choice(body.get("tools", []), self.allowed)
        return None


def offer(
    plan: Plan,
    wires: dict[str, WireBlock],
    format: str,
    managed: ManagedContext | None = None,
    *,
    read_back: bool = False,
) -> tuple[Plan, Offer | None]:
    """A plan with the tools offered at its step, and the offer; None without a graph.

    Shortens the list in `wires`. `read_back` says whether that tool will follow. `managed` is the
    context being reproduced, whose offer is already included in the plan's count.
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
    masked = (
        format in ("anthropic", "gemini", "pairs", "responses")
        and len(allowed) < len(listed)
        and bool(allowed)
    )
    read_back = read_back and read_tool.NAME not in counted
    more_tools = [read_tool.NAME] if read_back else []
    words = mask.words([*allowed, *more_tools], state) if masked else ""
    reasons = {one: _reason(found, one) for one in counted if one in out}
    next_ones = _likely(plan.session, found, wire, allowed) if managed is None else ()
    made = Offer(
        found, state, tuple(listed), tuple(allowed), left_out, words, read_back, reasons, next_ones
    )  # fmt: skip
    more = plan.session.scaled(tokens.count(words)) if words else 0
    shown = replace(plan, ending=ending_with(plan.ending, words, more), tools=found.row)
    return (shown if managed is not None else _counted(shown, more - left_out)), made


def _reason(found: Tooling, tool: str) -> str:
    """Why a tool is left out."""
    needs = found.graph.needs[tool]
    if needs == (OWN_USE,) and found.row.learned_from is not None:
        return f"none of the agent's newest {found.row.learned_from} sessions used it"
    return f"needs {', '.join(needs)}"


def _likely(
    session: Session, found: Tooling, wire: WireBlock, allowed: Sequence[str]
) -> tuple[Likely, ...]:
    """The allowed tools that may come next, by what a policy learned of the agent's sessions."""
    if not found.row.habits:
        return ()
    offered = {tool_name(tool): tool for tool in tools_in(wire)}
    names = {tool_name(one) for name in allowed for one in each([offered[name]])}
    steps = newest_steps(session)
    both = read(found.row.habits)
    both.add(habits_of(steps), OWN)
    ranked = likely(both, steps[-WITHIN:], most=len(both.uses))
    return tuple(one for one in ranked if one.tool in names)[:LIKELY]


TOOL_FORMATS = frozenset({"anthropic", "gemini", "openai", "responses"})
"""Formats in which a context has a list of tools."""


def offers_read_back(plan: Plan, format: str) -> bool:
    """Whether a context lists `read_back` (`read_tool.is_listed`). An agent's own tool with this
    name comes first."""
    managed = plan.run.origin == Run.Origin.MANAGED
    if format not in TOOL_FORMATS or not managed or not plan.session.reads_back:
        return False
    binds = binds_thinking(plan.session.model)
    return read_tool.is_listed(plan.blocks, edited=_is_edited(plan), binds=binds)


def _is_edited(plan: Plan) -> bool:
    """Whether a revision before a context does more than follow the agent, which went back or
    compacted its history."""
    if not plan.revision:
        return False
    return bool(_EDITS.rows(run=plan.run.pk, number=plan.revision))


_EDITS = Statement(
    lambda: (
        Revision.objects.filter(run_id=given_uuid("run"), number__lte=given_int("number"))
        .exclude(trigger__in=("rewind", *OWN_COMPACTIONS))
        .values_list("number")[:1]
    )
)


def with_read_back(
    plan: Plan,
    wires: dict[str, WireBlock],
    managed: ManagedContext | None = None,
    *,
    files: bool = False,
) -> Plan:
    """A plan with `read_back` as the last tool, also in `wires`.

    `files` says that the context names files. Its tokens count until usage was reported. Those of
    `managed`, which is being reproduced, are in its count.
    """
    setup = next((one for one in reversed(plan.blocks) if one.type == "tools"), None)
    if setup is None:
        setup = _no_tools()
        plan = replace(plan, blocks=(setup, *plan.blocks))
    wire = wires.get(setup.id, {"type": "tools"})
    given = wire.get("tools")
    tools = given if isinstance(given, list) else []
    if any(tool_name(tool) == read_tool.NAME for tool in tools):
        return plan
    tool = read_tool.definition("anthropic", files=files)
    wires[setup.id] = {**wire, "tools": [*tools, tool]}
    if managed is not None:
        return plan
    [(_, size)] = sizes({"type": "tools", "tools": [tool]}).items()
    return with_hidden(plan, plan.session.scaled(size))


def with_hidden(plan: Plan, more: int) -> Plan:
    """A plan with `more` tokens that no block of its run has, until usage was reported: after that
    they are in the measured hidden part."""
    learned = plan.run.fold.get("scale") is not None
    return plan if learned or not more else _counted(plan, more)


def _no_tools() -> Block:
    """A tool list for an agent that has none."""
    return Block("tools", -1, 0, 0, 0, "system", "tools", "tools", 0, 0, "", "")


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


def check(session: Session, wanted: PlannedCall, now: datetime) -> dict[str, Any]:
    """Check whether a call may be made, and reserve it; a missing prompt size is estimated.

    Call before a transaction begins, or while holding the fold.
    """
    prompt = next_prompt(session) if wanted.tokens is None else 0
    if session.paused is not None:
        return refused_call(session, wanted, prompt)
    return reserve(session, wanted, prompt, now)


def next_prompt(session: Session) -> int:
    """Tokens of the next context in the format last requested, including shared knowledge, without
    omitted tools.

    Call before a transaction begins, or while holding the fold.
    """
    plan = catch_up(session)
    taken = ManagedContext.objects.filter(run=plan.run).order_by("-created")
    form = taken.values_list("format", flat=True).first() or "anthropic"
    setup = [block for block in plan.blocks if block.type == "tools"]
    wires, read_back = wire_blocks(session, setup), offers_read_back(plan, form)
    plan, _ = offer(plan, wires, form, read_back=read_back)
    return (with_read_back(plan, wires) if read_back else plan).standing.used
