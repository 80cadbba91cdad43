"""What tool definitions cost in a run, and what leaving out the unused ones would save."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compaction.cache.uses import CacheUse
from compaction.context.session import Call, Session
from compaction.prices.prices import micros
from compaction.simulation.simulate import Run
from compaction.tools.definitions import Definition, ToolList, definition_costs
from compaction.tools.listed import sized


@dataclass(frozen=True, slots=True)
class Defined:
    """Tokens that definitions are in all prompts of a run, those of tools that no step used, and
    micro-dollars; None if the log shows no definitions, or without a price."""

    tokens: int | None = None
    unused_tokens: int | None = None
    microusd: int | None = None
    unused_microusd: int | None = None
    hidden_microusd: int | None = None


def defined(
    session: Session, run: Run, uses: Sequence[CacheUse], count: Callable[[str], int]
) -> Defined:
    """Price the definitions of a session in the prompts of its run, by the simulated `uses`.

    `hidden_microusd` is what the part of each prompt costs that the log does not show: system
    prompt and tools, as far as it has none.
    """
    lists = list(_lists(session, run, count))
    calls = [Call(use.step, session.model, _began(session), use.usage) for use in uses]
    hidden = [ToolList((Definition("", session.hidden),), 1, len(run.steps))]
    costs = definition_costs(lists, calls)
    known = bool(calls) and costs.priced
    spent = definition_costs(hidden, calls).nanos() if known else None
    hidden_cost = None if spent is None else micros(spent)
    if not lists:
        return Defined(hidden_microusd=hidden_cost)
    used = {block.tool for block in session.blocks if block.type == "tool_use"}
    unused = {row.tool for row in costs.rows} - used
    sent = definition_costs(lists, [Call(step.step) for step in run.steps]).rows
    return Defined(
        sum(row.tokens * row.calls for row in sent),
        sum(row.tokens * row.calls for row in sent if row.tool in unused),
        micros(costs.nanos() or 0) if known else None,
        micros(costs.nanos(unused) or 0) if known else None,
        hidden_cost,
    )


def _began(session: Session) -> int | None:
    return session.calls[0].at if session.calls else None


def _lists(session: Session, run: Run, count: Callable[[str], int]) -> Iterator[ToolList]:
    ended = {entry.block.id: entry.to_step for entry in run.entries if entry.to_step is not None}
    for block in session.blocks:
        if block.type != "tools":
            continue
        first, setup = max(block.born, 1), block.role == "system"
        # What a search for tools found is sent, although it is marked as deferred.
        tools = tuple(
            Definition(one.name, one.tokens)
            for one in sized({"tools": _read(block.text)}, count)
            if not (one.deferred and setup)
        )
        before = session.hidden
        if not setup and first > 1 and first - 2 < len(run.steps):
            before += run.steps[first - 2].total
        yield ToolList(tools, first, ended.get(block.id, len(run.steps) + 1) - 1, before)


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
