"""Sums of sessions, and the dashboard figures derived from them."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import Literal, TypeVar

from django.db.models import Exists, Q

Unit = Literal["microusd", "tokens", "share", "count", "mean"]
"""Micro-dollars, tokens, a share of one, a whole number, a number per item."""

Basis = Literal["measured", "estimated"]
Value = float | int | None

_Name = TypeVar("_Name", str, int)


class Frequencies(Counter[int]):
    """How many sessions have each value. It is complete before its properties are read."""

    @cached_property
    def _ordered(self) -> tuple[list[int], list[int]]:
        """The values in order, and how many sessions have that value or less."""
        ordered = sorted(self)
        return ordered, list(accumulate(map(self.__getitem__, ordered)))

    def quantile(self, share: float) -> int | None:
        """The smallest value that is at least as large as that share of all; None without any."""
        ordered, up_to = self._ordered
        if not ordered:
            return None
        return ordered[bisect_left(up_to, max(1, math.ceil(share * up_to[-1])))]

    def at_least(self, value: float) -> int:
        """How many sessions have that value or more."""
        ordered, up_to = self._ordered
        below = bisect_left(ordered, value)
        return up_to[-1] - (up_to[below - 1] if below else 0) if ordered else 0

    @cached_property
    def sum(self) -> int:
        """The sum over all sessions."""
        return sum(map(mul, self, self.values()))


def _add(sums: dict[_Name, int], more: dict[_Name, int]) -> None:
    known = sums.get
    for name, many in more.items():
        sums[name] = known(name, 0) + many


@dataclass(slots=True)
class Sums:
    """Sums over sessions: by name, and how many have each peak (permille of the window) and each
    number of steps."""

    of: Counter[str] = field(default_factory=Counter)
    peaks: Frequencies = field(default_factory=Frequencies)
    steps: Frequencies = field(default_factory=Frequencies)

    @classmethod
    def together(cls, parts: Iterable[Sums]) -> Sums:
        """Several added up; in plain dicts, which takes half as long as in Counters."""
        of: dict[str, int] = {}
        peaks: dict[int, int] = {}
        steps: dict[int, int] = {}
        for part in parts:
            _add(of, part.of)
            _add(peaks, part.peaks)
            _add(steps, part.steps)
        return cls(Counter(of), Frequencies(peaks), Frequencies(steps))

    def add(self, other: Sums) -> None:
        """Add the sums of other sessions."""
        self.of.update(other.of)
        self.peaks.update(other.peaks)
        self.steps.update(other.steps)


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a tile; `of` returns None if it is unknown.

    `short` names the count of sessions for which the number is only a lower bound.
    """

    name: str
    label: str
    unit: Unit
    of: Callable[[Sums], Value]
    short: str = ""

    def at_least(self, sums: Sums) -> bool:
        """Whether the number is only a lower bound."""
        return bool(sums.of[self.short]) and self.of(sums) is not None


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure and its related figures; the first column is the headline.

    `counted` names the sum that says how many sessions it counts, `found` the filter that lists
    exactly these. `missing` names counts of sessions excluded or counted in part, with the reason.
    `basis` None means measured if every counted session is.
    """

    name: str
    title: str
    how: str
    basis: Basis | None
    counted: str
    found: Callable[[], Q | Exists]
    columns: tuple[Column, ...]
    missing: tuple[tuple[str, str], ...] = ()
    none: str = "No data in this range."

    @property
    def headed(self) -> bool:
        """Whether the headline adds something to the title."""
        return self.columns[0].label.lower() not in self.title.lower()


def total(name: str, known: str = "sessions") -> Callable[[Sums], Value]:
    """A sum by name; None if no session could contribute to it."""
    return lambda sums: sums.of[name] if sums.of[known] else None


def ratio(above: str, *below: str) -> Callable[[Sums], Value]:
    """One sum divided by the total of others; None if that is 0."""

    def of(sums: Sums) -> Value:
        whole = sum(sums.of[name] for name in below)
        return sums.of[above] / whole if whole else None

    return of
