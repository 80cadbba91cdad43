"""The bounds of a rollout's guardrail: what may be asked of the sessions that go first.

A guardrail is stored as {"sessions": 5, "cost": 20, "recall": null, …}: whole percents, null where
a bound is off. `sessions` is from how many on a bound is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Guardrail = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound and what it is about.

    `kind`: `dearer` is at most so many percent above the other side, `points` at most so many
    percentage points above it; `least` and `most` are percent of the new side's own.
    """

    name: str
    title: str
    kind: Literal["dearer", "points", "least", "most"]
    default: int
    high: int
    basis: Literal["measured", "estimated"]
    help: str

    @property
    def compares(self) -> bool:
        """Whether it needs sessions of the other side, too."""
        return self.kind in ("dearer", "points")

    def text(self, percent: int) -> str:
        """The bound in words."""
        return {
            "dearer": f"at most {percent} % dearer than the other side",
            "points": f"at most {percent} points above the other side",
            "least": f"at least {percent} %",
            "most": f"at most {percent} %",
        }[self.kind]


BOUNDS = {
    bound.name: bound
    for bound in (
        Bound(
            "cost", "Cost per model call", "dearer", 20, 1000, "measured",
            "All reported usage at list prices, over the calls that reported it.",
        ),
        Bound(
            "recall", "Recall in place", "least", 75, 100, "estimated",
            "Of what later calls needed, the share that still stood in the context as it was.",
        ),
        Bound(
            "ledger", "Facts kept by compactions", "least", 60, 100, "estimated",
            "Mean score of the fact ledgers of what the sessions were served.",
        ),
        Bound(
            "reviews", "Reviews that failed", "most", 20, 100, "measured",
            "Of the finished reviews of these sessions' compactions.",
        ),
        Bound(
            "outcomes", "Sessions that failed", "points", 10, 100, "measured",
            "Of the sessions whose agents said how they ended.",
        ),
    )
}  # fmt: skip
"""By name. The defaults are ours: plain offloading after 5 steps leaves 0.83 in place
(docs/cache.md), and 60 is the score below which a compaction comes into the review queue."""

SESSIONS = 5
"""From so many sessions on a bound is looked at, where nobody says otherwise."""
MOST_SESSIONS = 1000


class InvalidBound(ValueError):
    """A guardrail that cannot be; `field` names the bound, and the message says what is allowed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


def defaults() -> Guardrail:
    """The guardrail of a rollout for which nobody chose one."""
    return {"sessions": SESSIONS, **{name: bound.default for name, bound in BOUNDS.items()}}


def guardrail_of(given: Mapping[str, Any]) -> Guardrail:
    """A guardrail with the defaults for what is left out. Raises InvalidBound."""
    for name in given:
        if name != "sessions" and name not in BOUNDS:
            raise InvalidBound(name, f"is no bound; there are sessions, {', '.join(BOUNDS)}")
    made: Guardrail = {**defaults(), **given}
    if made["sessions"] is None:
        raise InvalidBound("sessions", "cannot be off")
    for name, value in made.items():
        most = BOUNDS[name].high if name in BOUNDS else MOST_SESSIONS
        least = 0 if name in BOUNDS else 1
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and least <= value <= most):
            raise InvalidBound(name, f"must be a whole number from {least} to {most}")
    return made
