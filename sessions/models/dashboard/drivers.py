"""What moved a figure most between two periods: the agent, model or policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sessions.models.dashboard.added_up import Slice
from sessions.models.dashboard.slices import REST
from sessions.models.web.sums import Sums

SPLIT = ("agent", "model", "policy")
"""What a slice names, in its order."""

Slices = Mapping[Slice, Sums]


@dataclass(frozen=True, slots=True)
class Driver:
    """The sessions that moved a figure most: those with this agent, model or policy (`by`), and
    their part of the change, in the figure's unit."""

    by: str
    value: str
    part: float


def driver_of(now: Slices, before: Slices, above: str, *below: str) -> Driver | None:
    """What moved a sum, or its ratio to the total of others, most; None if nothing did, or if all
    sessions have one agent, model and policy."""
    found = [one for at in range(len(SPLIT)) for one in _parts(at, now, before, above, below)]
    total = _value(now, above, below) - _value(before, above, below)
    best = max(found, key=lambda one: one.part * total, default=None)
    return best if best is not None and best.part * total > 0 else None


def _parts(
    at: int, now: Slices, before: Slices, above: str, below: tuple[str, ...]
) -> Iterator[Driver]:
    """The part of each agent, model or policy in the change; together they are the whole."""
    ours, theirs = (_by(at, slices, above, below) for slices in (now, before))
    if len(ours.keys() | theirs.keys()) < 2:
        return
    was = _value(before, above, below) if below else 0.0
    most, least = (_whole(slices, below) if below else 1 for slices in (now, before))
    for value in ours.keys() | theirs.keys():
        (over, under), (over_before, under_before) = (
            one.get(value, (0, 0)) for one in (ours, theirs)
        )
        part = (over - was * under) / (most or 1) - (over_before - was * under_before) / (
            least or 1
        )
        if value:
            yield Driver(SPLIT[at], value, part)


def _by(at: int, slices: Slices, above: str, below: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    over, under = Counter[str](), Counter[str]()
    for one, sums in slices.items():
        value = "" if one == REST else one[at]
        over[value] += sums.of[above]
        under[value] += sum(sums.of[name] for name in below)
    return {value: (over[value], under[value]) for value in over}


def _value(slices: Slices, above: str, below: tuple[str, ...]) -> float:
    over = _whole(slices, (above,))
    return over / (_whole(slices, below) or 1) if below else over


def _whole(slices: Slices, names: tuple[str, ...]) -> int:
    return sum(sums.of[name] for sums in slices.values() for name in names)
