"""Limits of a rollout's guardrail, checked on the first sessions under the new version.

A guardrail is stored as {"sessions": 5, "cost": 20, "recall": null, …}: whole percents, null if a
limit is off. `sessions` is the number of sessions from which limits are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Guardrail = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit of a guardrail.

    `kind`: `costlier` is at most so many percent above the other side, `points` at most so many
    percentage points above it; `least` and `most` are percentages of the new side itself.
    """

    name: str
    title: str
    kind: Literal["costlier", "points", "least", "most"]
    default: int
    high: int
    basis: Literal["measured", "estimated"]
    help: str

    @property
    def compares(self) -> bool:
        """Whether it compares with the other side."""
        return self.kind in ("costlier", "points")

    def text(self, percent: int) -> str:
        """The limit in words."""
        return {
            "costlier": f"at most +{percent} % against the other side",
            "points": f"at most {percent} points above the other side",
            "least": f"at least {percent} %",
            "most": f"at most {percent} %",
        }[self.kind]


BOUNDS = {
    bound.name: bound
    for bound in (
        Bound(
            "cost", "Cost per model call", "costlier", 20, 1000, "measured",
            "Reported usage at list prices, over all calls that reported it.",
        ),
        Bound(
            "recall", "Recall in context", "least", 75, 100, "estimated",
            "Share of the facts that later calls needed that were still in the context unchanged.",
        ),
        Bound(
            "ledger", "Facts kept by compactions", "least", 60, 100, "estimated",
            "Mean score of the fact ledgers of managed contexts.",
        ),
        Bound(
            "reviews", "Failed reviews", "most", 20, 100, "measured",
            "Out of the finished reviews of these sessions' compactions.",
        ),
        Bound(
            "outcomes", "Failed sessions", "points", 10, 100, "measured",
            "Out of the sessions whose agents reported an outcome.",
        ),
    )
}  # fmt: skip
"""Limits by name. The defaults are our choice: plain offloading after 5 steps keeps 0.83 in context
(docs/record/cache.md), and 60 is the score below which a compaction enters the review queue."""

SESSIONS = 5
"""Default number of sessions from which limits are checked."""
MOST_SESSIONS = 1000


class InvalidBound(ValueError):
    """An invalid guardrail; `field` names the limit, and the message says what is allowed."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


def defaults() -> Guardrail:
    """The default guardrail of a rollout."""
    return {"sessions": SESSIONS, **{name: bound.default for name, bound in BOUNDS.items()}}


def guardrail_of(given: Mapping[str, Any]) -> Guardrail:
    """Validate a guardrail and fill in defaults. Raises InvalidBound."""
    for name in given:
        if name != "sessions" and name not in BOUNDS:
            raise InvalidBound(name, f"is not a limit; use sessions, {', '.join(BOUNDS)}")
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
