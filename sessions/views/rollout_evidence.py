"""What speaks for a rollout and against it: its simulation in short, and the linter's remarks."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.policies.lint import Remark, remarks
from compaction.policies.policy import InvalidPolicy, from_dict
from sessions.api.simulated import compared
from sessions.models import PolicyVersion, Rollout


@dataclass(frozen=True, slots=True)
class Evidence:
    """A simulation as the page of a rollout tells it.

    `figures` are (name, text), without those that are unknown; `sessions` are those it rests on.
    """

    against: PolicyVersion
    sessions: int
    figures: list[tuple[str, str]]


def evidence(found: Rollout) -> Evidence | None:
    """What the simulation found that was given as evidence; None where none was."""
    if found.simulation is None:
        return None
    told = compared(found.simulation, found.version)
    mine, theirs, sides = told["sums"], told["active_sums"], told["against_active"]
    figures = []
    if mine["priced"] == theirs["priced"]:
        figures.append(("Cost", _change(mine["cost_microusd"], theirs["cost_microusd"])))
    figures.append(("Tokens sent", _change(mine.get("tokens_sent"), theirs.get("tokens_sent"))))
    figures.append(("Needs in place", _points(mine["in_place"], theirs["in_place"])))
    if priced := sides["priced"]:
        figures.append(("Sessions dearer", f"{sides['dearer']} of {priced}"))
        figures.append(("Sessions cheaper", f"{sides['cheaper']} of {priced}"))
    if needing := sides["with_needs"]:
        figures.append(("Fewer needs in place", f"{sides['hides_more']} of {needing}"))
    known = [(name, text) for name, text in figures if text]
    return Evidence(found.simulation.active, told["sessions"], known)


def _change(mine: int | None, theirs: int | None) -> str:
    return f"{_signed(100 * (mine / theirs - 1))} %" if mine is not None and theirs else ""


def _points(mine: float | None, theirs: float | None) -> str:
    if mine is None or theirs is None:
        return ""
    return f"{_signed(100 * (mine - theirs))} points"


def _signed(value: float) -> str:
    text = f"{abs(value):.1f}"
    return text if text == "0.0" else f"{'+' if value > 0 else '−'}{text}"


def remarks_of(version: PolicyVersion) -> tuple[Remark, ...]:
    """What the linter says of a version; nothing of one of another release, which cannot run."""
    try:
        return tuple(remarks(from_dict(version.document)))
    except InvalidPolicy:
        return ()
