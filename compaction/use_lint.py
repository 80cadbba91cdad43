"""What is known to go wrong beside a policy: budgets and lists of tools (docs/policies.md)."""

from __future__ import annotations

from compaction.policy_lint import Remark

SMALL = 10_000
"""Tokens of a budget up to which a hard limit ends ordinary tasks half-way (Shannon)."""
USUAL = 50_000
"""Tokens of an agent's budget that Shannon recommends instead, soft or with approval."""
TOOLS = 20
"""Tools above which a model that may choose any of them chooses worse (after MaybeAi)."""


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
