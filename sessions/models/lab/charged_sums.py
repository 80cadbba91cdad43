"""Sums that versions are compared by: cost with reading back, tokens, and recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]
"""Figures of one session under one version, as in `SimulationResult.figures`, or sums of them."""


def charged_cost(of: Figures) -> int | None:
    """The cost under a version, including that of reading back what was needed and missing; None
    if either is unknown. A recording, known by having no recorded cost beside its own, has paid for
    its reading back."""
    recorded = "cost_recorded_microusd" not in of
    cost, again = of.get("cost_microusd"), of.get("read_backs_microusd", 0 if recorded else None)
    return None if cost is None or again is None else cost + again


def compared_sums(figures: Sequence[Figures]) -> dict[str, Any]:
    """Cost over the `priced` sessions (None without any), and over all sessions the needs with
    the share of these in context. `read_backs_microusd` only where the figures have it."""
    priced = [one for one in figures if one.get("cost_microusd") is not None]
    answer = {
        "priced": len(priced),
        "cost_microusd": added(priced, "cost_microusd"),
        "needs": sum(one.get("needs") or 0 for one in figures),
        "in_context": weighted(figures, "in_context", "needs"),
    }
    again = [one for one in priced if one.get("read_backs_microusd") is not None]
    if again:
        answer["read_backs_microusd"] = added(again, "read_backs_microusd")
    return answer


def added(figures: Sequence[Figures], key: str) -> int | None:
    """The sum of a figure; None without figures."""
    return sum(one[key] for one in figures) if figures else None


def weighted(figures: Iterable[Figures], key: str, weight: str) -> float | None:
    """The mean of a figure, weighted by another; None if nothing weighs."""
    known = [(one[key], one[weight]) for one in figures if one.get(key) is not None]
    whole = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / whole if whole else None
