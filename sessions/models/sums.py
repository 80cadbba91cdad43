"""Numbers as a dashboard has them: what sessions add up to, and what is worked out of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from django.db.models import Exists, Q

Unit = Literal["microusd", "tokens", "share", "count", "mean"]
"""Micro-dollars, tokens, a share of one, a whole number, a number per something."""

Basis = Literal["measured", "estimated"]
Value = float | int | None


@dataclass(slots=True)
class Sums:
    """What some sessions add up to: sums by name, shares of the window at the peak, and steps."""

    of: Counter[str] = field(default_factory=Counter)
    peaks: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)

    def add(self, other: Sums) -> None:
        """Take in other sessions."""
        self.of.update(other.of)
        self.peaks += other.peaks
        self.steps += other.steps


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a tile; `of` gives None where nothing tells.

    `short` names the sum of sessions whose part of it is a lower bound: with any, so is the number.
    """

    name: str
    label: str
    unit: Unit
    of: Callable[[Sums], Value]
    short: str = ""

    def at_least(self, sums: Sums) -> bool:
        """Whether the number may be more than it says."""
        return bool(sums.of[self.short]) and self.of(sums) is not None


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure with those beside it; the first column is the headline.

    `counted` is the sum that says how many sessions it counts, `found` the condition by which a
    list shows exactly these. `missing` names sums of sessions that are left out, or count in part,
    and says why. `basis` None: measured where every counted session is.
    """

    name: str
    title: str
    how: str
    basis: Basis | None
    counted: str
    found: Callable[[], Q | Exists]
    columns: tuple[Column, ...]
    missing: tuple[tuple[str, str], ...] = ()
    none: str = "No session of this range tells."

    @property
    def headed(self) -> bool:
        """Whether the headline says more than the title."""
        return self.columns[0].label not in self.title


def total(name: str, known: str = "sessions") -> Callable[[Sums], Value]:
    """The sum of that name; None where no session is known that it could come from."""
    return lambda sums: sums.of[name] if sums.of[known] else None


def ratio(above: str, *below: str) -> Callable[[Sums], Value]:
    """One sum over the sum of others; None where these are nothing."""

    def of(sums: Sums) -> Value:
        whole = sum(sums.of[name] for name in below)
        return sums.of[above] / whole if whole else None

    return of


def quantile(values: list[float] | list[int], share: float) -> Value:
    """The least value that so large a share of them does not exceed; None of none."""
    if not values:
        return None
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]
