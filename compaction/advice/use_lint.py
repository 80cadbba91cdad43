"""Lint the use of a policy: budgets, tool lists, session ids (docs/policies/policies.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from compaction.proposals.strategy import Remark

SMALL = 10_000
"""Budget up to which a hard limit cuts off ordinary tasks, in tokens (Shannon)."""
USUAL = 50_000
"""The budget that Shannon recommends instead, in tokens, soft or with approval."""
TOOLS = 20
"""Number of available tools above which models choose worse (after MaybeAi)."""
IDS, HOUR = 10, 3_600_000
"""Single-step sessions of one agent, within this many ms, that look like requests (our choice)."""


def id_remarks(begun: Mapping[str, Iterable[int]]) -> tuple[Remark, ...]:
    """Return remarks on single-step sessions: their start times (ms since the epoch) by agent."""
    found = []
    for agent, times in begun.items():
        ordered = sorted(times)
        within = max((_within(ordered, end) for end in range(len(ordered))), default=0)
        if within >= IDS:
            text = (
                f"{agent or 'An agent without a name'} started {within} single-step sessions "
                "within an hour. If each request of a conversation has its own session id, "
                "nothing is managed and no cache is read: send one id for the whole conversation."
            )
            found.append(Remark(agent, text, "warning"))
    return tuple(found)


def _within(ordered: list[int], end: int) -> int:
    """Count the times in the hour that ends with this one."""
    return end + 1 - bisect_left(ordered, ordered[end] - HOUR)


def budget_remarks(mode: str, tokens: int | None) -> tuple[Remark, ...]:
    """Return remarks on a budget by mode (hard, soft, approval) and tokens; None if unlimited."""
    if mode != "hard" or tokens is None or tokens > SMALL:
        return ()
    text = (
        f"A hard limit of {tokens:,} tokens cuts off a task that is only slightly larger. Set it "
        f"to {USUAL:,} or more, and make it soft or ask for approval."
    )
    return (Remark("tokens", text, "warning"),)


def tool_remarks(allowed: int) -> tuple[Remark, ...]:
    """Return remarks on the number of tools a model may choose from at a call."""
    if allowed <= TOOLS:
        return ()
    text = (
        f"With {allowed} tools to choose from, a model picks the wrong one more often. Enable them "
        f"by use with a tool graph, or mask them by state: at most {TOOLS} at a time."
    )
    return (Remark("tools", text, "note"),)
