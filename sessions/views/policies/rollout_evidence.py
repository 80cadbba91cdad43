"""Evidence for a rollout: its simulation in short, and the linter's remarks."""

from __future__ import annotations

from dataclasses import dataclass

from compaction.advice.lint import remarks
from compaction.policies.policy import InvalidPolicy, from_dict
from compaction.proposals.strategy import Remark
from sessions.api.lab.simulated import compared
from sessions.figures import change
from sessions.models import PolicyVersion, Rollout


@dataclass(frozen=True, slots=True)
class Evidence:
    """A simulation as summarized on a rollout's page.

    `figures` are (name, text) pairs of known figures; `sessions` is the number of sessions behind
    them.
    """

    against: PolicyVersion
    sessions: int
    figures: list[tuple[str, str]]


def evidence(found: Rollout) -> Evidence | None:
    """Summarize the simulation attached as evidence; None without one."""
    if found.simulation is None:
        return None
    comparison = compared(found.simulation, found.version)
    mine, theirs, sides = (
        comparison["sums"],
        comparison["active_sums"],
        comparison["against_active"],
    )
    figures = []
    if mine["priced"] == theirs["priced"]:
        figures.append(("Cost", _change(mine["cost_microusd"], theirs["cost_microusd"])))
    figures.append(("Tokens sent", _change(mine.get("tokens_sent"), theirs.get("tokens_sent"))))
    figures.append(("Needed facts in context", _points(mine["in_context"], theirs["in_context"])))
    if priced := sides["priced"]:
        figures.append(("Sessions with higher cost", f"{sides['costlier']} of {priced}"))
        figures.append(("Sessions with lower cost", f"{sides['cheaper']} of {priced}"))
    if needing := sides["with_needs"]:
        figures.append(("Lower recall", f"{sides['hides_more']} of {needing}"))
    known = [(name, text) for name, text in figures if text]
    return Evidence(found.simulation.active, comparison["sessions"], known)


def _change(mine: int | None, theirs: int | None) -> str:
    return change(mine / theirs - 1) if mine is not None and theirs else ""


def _points(mine: float | None, theirs: float | None) -> str:
    if mine is None or theirs is None:
        return ""
    return f"{_signed(100 * (mine - theirs))} points"


def _signed(value: float) -> str:
    text = f"{abs(value):.1f}"
    return text if text == "0.0" else f"{'+' if value > 0 else '−'}{text}"


def remarks_of(version: PolicyVersion) -> tuple[Remark, ...]:
    """The linter's remarks on a version; empty if this release cannot run it."""
    try:
        return tuple(remarks(from_dict(version.document)))
    except InvalidPolicy:
        return ()
