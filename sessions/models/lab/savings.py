"""What the newest simulation says that a policy would have saved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.lab.simulations import Simulation, SimulationResult
from sessions.models.record.sessions import Session

RECENT = 12
"""Simulations looked at, newest first."""


class _Priced(NamedTuple):
    """What is compared of a session: micro-dollars, needs, and the share of these in context."""

    cost: int
    needs: int
    in_context: float | None


@dataclass(frozen=True, slots=True)
class SimulatedSaving:
    """The cheapest version of a simulation over its `sessions` with a price, as simulated and as
    recorded: sums as `sums` makes them, of `priced`, `cost_microusd` and `in_context`."""

    simulation: UUID
    version: str
    sessions: int
    simulated: dict[str, Any]
    recorded: dict[str, Any]

    @property
    def microusd(self) -> int:
        """What it saves; negative if it costs more."""
        return int(self.recorded["cost_microusd"] - self.simulated["cost_microusd"])


def simulated_saving(team: Team, of: QuerySet[Session]) -> SimulatedSaving | None:
    """Find it for those of these sessions that the newest simulation of any of them covers."""
    recent = Simulation.objects.for_team(team).order_by("-created").values_list("pk", flat=True)
    results = SimulationResult.objects.filter(
        simulation__in=list(recent[:RECENT]), session__in=of.values("pk"), problem=""
    )
    newest = results.order_by("-simulation__created").values_list("simulation", flat=True).first()
    if newest is None:
        return None
    found: dict[int | None, dict[UUID, _Priced]] = {}
    figures = (f"figures__{name}" for name in ("cost_microusd", "needs", "in_context"))
    rows = results.filter(simulation=newest).values_list("version", "session", *figures)
    for version, session, *priced in rows:
        if priced[0] is not None:
            found.setdefault(version, {})[session] = _Priced(*priced)
    recorded = found.pop(None, {})
    best: tuple[int, int, list[UUID]] | None = None
    for version, sessions in found.items():
        both = [one for one in sessions if one in recorded]
        saved = sum(recorded[one].cost - sessions[one].cost for one in both)
        if both and version is not None and (best is None or saved > best[0]):
            best = saved, version, both
    if best is None:
        return None
    _, version, both = best
    versions = Simulation.objects.for_team(team).get(pk=newest).versions
    named = versions.select_related("policy").get(pk=version)
    simulated = _sums(found[version][one] for one in both)
    return SimulatedSaving(
        newest, str(named), len(both), simulated, _sums(recorded[one] for one in both)
    )


def _sums(rows: Iterable[_Priced]) -> dict[str, Any]:
    known = list(rows)
    needs = sum(one.needs for one in known)
    shares = sum(one.needs * (one.in_context or 0) for one in known)
    return {
        "priced": len(known),
        "cost_microusd": sum(one.cost for one in known),
        "in_context": shares / needs if needs else None,
    }
