"""How full a context is, and what follows from it for the agent that fills it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from compaction.policies.policy import Policy

Level = Literal["ok", "warn", "trigger", "over"]

WARN = 0.80
"""Share of the room from which an agent is warned (Shannon)."""

LADDER = ((0.95, 1_500), (0.90, 750), (0.85, 300), (0.80, 50))
"""Share of the room, or of what may be spent, from which so many milliseconds of waiting are
advised (Shannon)."""


def delay_of(share: float) -> int:
    """Milliseconds to wait before the next call, as advice."""
    return next((delay for least, delay in LADDER if share >= least), 0)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a context may take, in tokens of the whole prompt.

    `window` is the model's, `reserve` is kept free for the output. At `trigger` the policy acts,
    down to `target`; None where it has no such number.
    """

    window: int
    reserve: int = 0
    warn: float = WARN
    trigger: int | None = None
    target: int | None = None

    @property
    def room(self) -> int:
        """Tokens that a prompt may take: the window less the reserve, one at least."""
        return max(self.window - self.reserve, 1)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a context stands to its budget: `share` is of the room, `delay_ms` is advice.

    `used` is `counted`, what we count, corrected by what the provider reported of earlier calls.
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


def budget_of(policy: Policy, window: int, hidden: int = 0) -> Budget:
    """The budget that a policy sets in a model's window.

    Trigger and target are those of its first step that has a trigger. `hidden` are prompt tokens
    beside our count of the conversation: a step's own budget counts that alone.
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
        return Budget(
            window,
            reserve,
            trigger=int(trigger * base) + more,
            target=None if target is None else int(target * base) + more,
        )
    return Budget(window, reserve)


def standing(budget: Budget, used: int, counted: int | None = None) -> Standing:
    """Where a prompt of so many tokens stands, and how long its agent is advised to wait.

    `counted` is our own count of it, where that is another.
    """
    share = used / budget.room
    return Standing(
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


def _level(budget: Budget, used: int, share: float) -> Level:
    if used > budget.room:
        return "over"
    if budget.trigger is not None and used >= budget.trigger:
        return "trigger"
    return "warn" if share >= budget.warn else "ok"
