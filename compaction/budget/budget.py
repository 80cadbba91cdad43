"""How full a context is, and the advice for its agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction.policies.policy import Policy

Level = Literal["ok", "warn", "trigger", "over"]

WARN = 0.80
"""Share of the usable window from which an agent is warned (Shannon)."""

LADDER = ((0.95, 1_500), (0.90, 750), (0.85, 300), (0.80, 50))
"""Advised delays in ms, by the share of the usable window or budget that is used (Shannon)."""


def delay_of(share: float) -> int:
    """Return the advised delay before the next call, in ms."""
    return next((delay for least, delay in LADDER if share >= least), 0)


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """The limits of a context, in tokens of the whole prompt.

    `window` is the model's, `reserve` is kept free for the output. The policy acts at `trigger`,
    and aims for `target`; None if it has no such number.
    """

    window: int
    reserve: int = 0
    warn: float = WARN
    trigger: int | None = None
    target: int | None = None

    @property
    def room(self) -> int:
        """Tokens available to a prompt: the window minus the reserve, at least one."""
        return max(self.window - self.reserve, 1)


@dataclass(frozen=True, slots=True)
class ContextFill:
    """The fill of a context: `share` is of the usable window, `delay_ms` is advice.

    `used` is `counted`, our own count, corrected by what the provider reported for earlier calls.
    """

    used: int
    counted: int
    window: int
    room: int
    share: float
    state: Level
    trigger: int | None
    target: int | None
    delay_ms: int


def budget_of(policy: Policy, window: int, hidden: int = 0) -> ContextLimits:
    """Return the budget that a policy sets in a model's window.

    Trigger and target come from its first step with a trigger. `hidden` is the number of prompt
    tokens outside our count of the conversation; a step's own budget counts only the conversation.
    """
    reserve = policy.kept_free(window)
    room = max(window - reserve, 1)
    for step in policy.steps:
        trigger = getattr(step.parameters, "trigger", None)
        if trigger is None:
            continue
        own = getattr(step.parameters, "budget", 0)
        base, more = (own, hidden) if own else (room, 0)
        target = getattr(step.parameters, "target", None)
        return ContextLimits(
            window,
            reserve,
            trigger=int(trigger * base) + more,
            target=None if target is None else int(target * base) + more,
        )
    return ContextLimits(window, reserve)


def standing(budget: ContextLimits, used: int, counted: int | None = None) -> ContextFill:
    """Return the fill of a prompt of this many tokens, and the advised delay.

    `counted` is our own count of it, if different.
    """
    share = used / budget.room
    return ContextFill(
        used=used,
        counted=used if counted is None else counted,
        window=budget.window,
        room=budget.room,
        share=share,
        state=_level(budget, used, share),
        trigger=budget.trigger,
        target=budget.target,
        delay_ms=delay_of(share),
    )


def _level(budget: ContextLimits, used: int, share: float) -> Level:
    if used > budget.room:
        return "over"
    if budget.trigger is not None and used >= budget.trigger:
        return "trigger"
    return "warn" if share >= budget.warn else "ok"
