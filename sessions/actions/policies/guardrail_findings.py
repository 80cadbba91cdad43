"""What a guardrail finds: figures of both sides, limits, and these in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from sessions.actions.policies.bounds import BOUNDS
from sessions.figures import percent


class Figure(NamedTuple):
    """A figure of one side: its value (None if unknown) and the number of sessions behind it."""

    value: float | None
    sessions: int


@dataclass(frozen=True, slots=True)
class LimitState:
    """The state of one limit: `value` of the new side from `n` sessions, `other` from `n_other`.

    Values are micro-dollars per call for `cost`, else shares from 0 to 1. `bound` is in percent,
    None if off. `few`: a side it needs has fewer than `needed` sessions.
    """

    name: str
    state: Literal["ok", "broken", "few", "off"]
    value: float | None
    other: float | None
    n: int
    n_other: int
    needed: int
    bound: int | None
    basis: str


@dataclass(frozen=True, slots=True)
class Side:
    """The sessions of one side: their number and sums; `paid` in micro-dollars."""

    sessions: int = 0
    steps: int = 0
    paid: int | None = None
    errors: int = 0
    ended: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """Figures of both sides, and the state of each limit."""

    new: Side
    other: Side
    bounds: tuple[LimitState, ...]

    @property
    def broken(self) -> tuple[LimitState, ...]:
        """The limits that are exceeded."""
        return tuple(one for one in self.bounds if one.state == "broken")

    def stored(self) -> dict[str, Any]:
        """The findings as stored with a rollout."""
        return {
            "new": asdict(self.new),
            "other": asdict(self.other),
            "bounds": {one.name: asdict(one) for one in self.bounds},
        }


def reason(finding: LimitState) -> str:
    """An exceeded limit in words, for the page and the audit log."""
    bound = BOUNDS[finding.name]
    assert finding.value is not None and finding.bound is not None
    if bound.kind == "costlier":
        more = (finding.value / (finding.other or finding.value) - 1) * 100
        return f"{bound.title}: +{more:.0f} %, at most +{finding.bound} % allowed"
    if bound.kind == "points":
        more = (finding.value - (finding.other or 0)) * 100
        return f"{bound.title}: {more:.0f} points above, at most {finding.bound} allowed"
    limit = "at least" if bound.kind == "least" else "at most"
    return f"{bound.title}: {percent(finding.value, 1)}, {limit} {finding.bound} % allowed"


def missing(finding: LimitState) -> Iterator[str]:
    """What a limit still waits for, per side: "3 of 5 sessions of the new side"."""
    sides = [("new", finding.n)]
    if BOUNDS[finding.name].compares:
        sides.append(("other", finding.n_other))
    for side, n in sides:
        if n < finding.needed:
            yield f"{n} of {finding.needed} sessions of the {side} side"
