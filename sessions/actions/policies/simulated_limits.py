"""Limits of a guardrail that a simulation already exceeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions.actions.policies.bounds import BOUNDS, Guardrail
from sessions.actions.policies.guardrail_findings import Figure, LimitState
from sessions.actions.policies.guardrails import NOTHING, judged
from sessions.models.lab.charged_sums import charged_cost

Sums = Mapping[str, Any]

SIMULATED = ("cost", "recall")
"""Limits on figures that a simulation has; the others need real sessions."""


def broken_by(draft: Sums, active: Sums, guardrail: Guardrail) -> tuple[LimitState, ...]:
    """The limits that a version's simulation exceeds, given its sums and those of the active one
    over the same sessions. One session is enough: a simulation repeats the recording."""
    found = []
    for name in SIMULATED:
        bound = BOUNDS[name]
        new, other = _figure(name, draft, active), _figure(name, active, draft)
        state = judged(bound, guardrail.get(name), new, other, 1)
        if state == "broken":
            found.append(
                LimitState(
                    name, state, new.value, other.value, new.sessions, other.sessions, 1,
                    guardrail.get(name), bound.basis,
                )
            )  # fmt: skip
    return tuple(found)


def _figure(name: str, mine: Sums, theirs: Sums) -> Figure:
    if name == "recall":
        return Figure(mine.get("in_context"), 1)
    # Other sessions were priced than on the other side: sums say nothing about each other.
    if mine["priced"] != theirs["priced"] or not mine["priced"] or not mine.get("steps"):
        return NOTHING
    cost = charged_cost(mine)
    if cost is None or charged_cost(theirs) is None:
        cost = mine["cost_microusd"]
    return Figure(cost / mine["steps"], mine["priced"])
