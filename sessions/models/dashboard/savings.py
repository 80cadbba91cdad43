"""What the newest simulation says that a policy would have saved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.lab.simulations import Simulation, SimulationResult
from sessions.models.policies.policies import PolicyVersion
from sessions.models.record.sessions import Session

RECENT = 12
"""Simulations looked at, newest first."""

FEWER = 0.05
"""Share of the needs that an advised version may have less in context than the recording (our
choice)."""

_FIGURES = ("cost_microusd", "needs", "in_context", "read_backs_microusd")


class _Priced(NamedTuple):
    """What is compared of a session: micro-dollars, needs, the share of these in context, and the
    micro-dollars of reading the others again."""

    cost: int
    needs: int
    in_context: float | None
    again: int | None


@dataclass(frozen=True, slots=True)
class SimulatedSaving:
    """A version of a simulation over its `sessions` with a price, as simulated and as recorded:
    sums as `sums` makes them, of `priced`, `cost_microusd`, `in_context` and
    `read_backs_microusd`."""

    simulation: UUID
    version: str
    sessions: int
    simulated: dict[str, Any]
    recorded: dict[str, Any]

    @property
    def keeps(self) -> bool:
        """Whether it keeps what is needed in context nearly as often as the recording."""
        mine, its = self.simulated["in_context"], self.recorded["in_context"]
        return mine is None or its is None or bool(mine >= its - FEWER)

    @property
    def microusd(self) -> int:
        """What it saves, reading again included; negative if it costs more."""
        mine, again = self.simulated["cost_microusd"], self.simulated["read_backs_microusd"]
        return int(self.recorded["cost_microusd"] - mine - again)


def simulated_saving(team: Team, of: QuerySet[Session]) -> SimulatedSaving | None:
    """The best version of the newest simulation of any of these sessions, over those that it
    covers: the cheapest with reading again what it lacks, of those that keep what is needed, else
    the one that keeps most of it. None without one."""
    recent = Simulation.objects.for_team(team).order_by("-created").values_list("pk", flat=True)
    results = SimulationResult.objects.filter(
        simulation__in=list(recent[:RECENT]), session__in=of.values("pk"), problem=""
    )
    newest = results.order_by("-simulation__created").values_list("simulation", flat=True).first()
    if newest is None:
        return None
    found: dict[int | None, dict[UUID, _Priced]] = {}
    figures = (f"figures__{name}" for name in _FIGURES)
    rows = results.filter(simulation=newest).values_list("version", "session", *figures)
    for version, session, *priced in rows:
        # The recording paid for its own reading again.
        if priced[0] is not None and (version is None or priced[-1] is not None):
            found.setdefault(version, {})[session] = _Priced(*priced)
    recorded = found.pop(None, {})
    named = PolicyVersion.objects.filter(policy__team=team).select_related("policy").in_bulk(found)
    savings = [
        SimulatedSaving(
            newest,
            str(named[version]),
            len(both),
            _sums(sessions[one] for one in both),
            _sums(recorded[one] for one in both),
        )
        for version, sessions in found.items()
        if version is not None and (both := [one for one in sessions if one in recorded])
    ]
    return max(savings, key=_rank, default=None)


def _rank(one: SimulatedSaving) -> tuple[bool, float]:
    return one.keeps, one.microusd if one.keeps else one.simulated["in_context"]


def _sums(rows: Iterable[_Priced]) -> dict[str, Any]:
    known = list(rows)
    needs = sum(one.needs for one in known)
    shares = sum(one.needs * (one.in_context or 0) for one in known)
    return {
        "priced": len(known),
        "cost_microusd": sum(one.cost for one in known),
        "read_backs_microusd": sum(one.again or 0 for one in known),
        "in_context": shares / needs if needs else None,
    }
