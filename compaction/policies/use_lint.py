"""What is known to go wrong beside a policy: budgets, lists of tools, ids (docs/policies.md)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from compaction.policies.lint import Remark

SMALL = 10_000
"""Tokens of a budget up to which a hard limit ends ordinary tasks half-way (Shannon)."""
USUAL = 50_000
"""Tokens of an agent's budget that Shannon recommends instead, soft or with approval."""
TOOLS = 20
"""Tools above which a model that may choose any of them chooses worse (after MaybeAi)."""
IDS, HOUR = 10, 3_600_000
"""Sessions of a single step, of one agent and within so many ms, that look like requests (ours)."""


def id_remarks(begun: Mapping[str, Iterable[int]]) -> tuple[Remark, ...]:
    """Of when sessions of exactly one step began (ms since the epoch), by their agent."""
    found = []
    for agent, times in begun.items():
        ordered = sorted(times)
        within = max((_within(ordered, end) for end in range(len(ordered))), default=0)
        if within >= IDS:
            text = (
                f"{agent or 'An agent without a name'} began {within} sessions of a single step "
                "within an hour. If each request of a conversation comes with a session id of its "
                "own, nothing is ever managed and no cache is read: send one id for all of it."
            )
            found.append(Remark(agent, text, "warning"))
    return tuple(found)


def _within(ordered: list[int], end: int) -> int:
    """How many of the times lie in the hour that ends with this one."""
    return end + 1 - bisect_left(ordered, ordered[end] - HOUR)


def budget_remarks(mode: str, tokens: int | None) -> tuple[Remark, ...]:
    """Of a budget by its mode (hard, soft, approval) and its tokens; None where it counts none."""
    if mode != "hard" or tokens is None or tokens > SMALL:
        return ()
    text = (
        f"A hard limit of {tokens:,} tokens ends a task that is only a little larger half-way. "
        f"Give it {USUAL:,} or more, and make it soft or ask for approval."
    )
    return (Remark("tokens", text, "warning"),)


def tool_remarks(allowed: int) -> tuple[Remark, ...]:
    """Of how many tools a model may choose from at a call."""
    if allowed <= TOOLS:
        return ()
    text = (
        f"A model that may choose from {allowed} tools takes the wrong one more often. Let a graph "
        f"enable them by use, or mask them by state: {TOOLS} at most at a time."
    )
    return (Remark("tools", text, "note"),)
