"""Lint a policy: known problems by setting (docs/policies/policies.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from compaction.policies.policy import Policy
from compaction.prices.prices import UNKNOWN_WINDOW
from compaction.proposals.strategy import Place, Remark
from compaction.strategies import STRATEGIES

RECITED = 5_000
"""Maximum tokens of a recitation, which is paid in full at every call (our choice)."""


def remarks(
    policy: Policy, *, window: int = UNKNOWN_WINDOW, reviewed: bool | None = None
) -> tuple[Remark, ...]:
    """Return the known problems of a policy in a window of this many tokens, in its order.

    `reviewed`: whether people have reviewed summaries of this policy; None if unknown.
    """
    found = list(_whole(policy, reviewed))
    steps = tuple((STRATEGIES[step.strategy], step.parameters) for step in policy.steps)
    room = max(window - policy.kept_free(window), 1)
    for index, (strategy, given) in enumerate(steps):
        for remark in strategy.remarks(Place(steps, index, window, room, policy.objective), given):
            where = f"steps[{index}].parameters.{remark.path}" if remark.path else f"steps[{index}]"
            found.append(replace(remark, path=where))
    if policy.recite is not None and policy.recite.tokens > RECITED:
        found.append(
            Remark(
                "recite.tokens",
                f"The recitation is new text at every call and never read from the cache: up to "
                f"{policy.recite.tokens:,} tokens at full price each time. Set it to "
                f"{RECITED:,} or less.",
                "note",
            )
        )
    if policy.recite is not None and policy.recite.dashboard > policy.recite.tokens:
        found.append(
            Remark(
                "recite.dashboard",
                f"The dashboard is part of the recitation, so it gets at most its "
                f"{policy.recite.tokens:,} tokens minus the to-do list. Raise tokens, or make the "
                f"dashboard smaller.",
                "note",
            )
        )
    return tuple(found)


def _whole(policy: Policy, reviewed: bool | None) -> Iterator[Remark]:
    names = [step.strategy for step in policy.steps]
    full = [step for step in policy.steps if STRATEGIES[step.strategy].summarizes]
    if not names:
        text = "Nothing is ever removed: a session ends when the window is full. Add a step."
        yield Remark("steps", text, "note")
    elif not full:
        text = (
            "No step acts when the window is full, so a long session ends there. Add compact or "
            "window as the last step."
        )
        yield Remark("steps", text, "warning")
    elif policy.reserve == 0 and not all(getattr(one.parameters, "budget", 0) for one in full):
        text = (
            "No part of the window is kept free for the output, so a long answer may not fit when "
            "the prompt is near the trigger. Set it to the model's maximum output, such as "
            "16,384."
        )
        yield Remark("reserve", text, "warning")
    if full and reviewed is False:
        text = (
            "No summary of this policy has been reviewed, so its losses are unknown. Send a share "
            "of them to the review queue."
        )
        yield Remark(f"steps[{policy.steps.index(full[0])}]", text, "note")
