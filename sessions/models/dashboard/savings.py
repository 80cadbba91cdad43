"""What the newest simulation says that a policy would have saved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from sessions.models.accounts.teams import Team
from sessions.models.lab.charged_sums import charged_cost, compared_sums
from sessions.models.lab.simulations import Simulation, SimulationResult
from sessions.models.policies.policies import PolicyVersion
from sessions.models.record.sessions import Session

RECENT = 12
"""Ended simulations looked at, newest first."""

FEWER = 0.05
"""Share of the needs that an advised version may have less in context than the recording (our
choice)."""

SMALLEST = 0.0005
"""Smallest difference that counts, as a share: a twentieth of a percent or of a point."""

_FIGURES = ("cost_microusd", "needs", "in_context", "read_backs_microusd")


@dataclass(frozen=True, slots=True)
class SimulatedSaving:
    """A version of a simulation over `sessions`, as simulated and as recorded: sums as
    `compared_sums` makes them, over the same sessions. `asked`: how many the simulation has, `at`:
    when it was asked for."""

    simulation: UUID
    at: datetime
    version: str
    sessions: int
    asked: int
    simulated: dict[str, Any]
    recorded: dict[str, Any]

    @property
    def keeps(self) -> bool:
        """Whether it keeps what is needed in context nearly as often as the recording."""
        mine, its = self.simulated["in_context"], self.recorded["in_context"]
        return mine is None or its is None or bool(mine >= its - FEWER)

    @property
    def microusd(self) -> int:
        """What it saves, reading back included; negative if it costs more."""
        return int(self.recorded["cost_microusd"] - (charged_cost(self.simulated) or 0))

    @property
    def saves(self) -> bool:
        """Whether it costs less than the recording."""
        return self.microusd > 0 and not self._counts_as_same

    @property
    def differs(self) -> bool:
        """Whether it changes what is paid or what is in context."""
        mine, its = self.simulated["in_context"], self.recorded["in_context"]
        recall = mine is not None and its is not None and abs(mine - its) >= SMALLEST
        return recall or not self._counts_as_same

    @property
    def _counts_as_same(self) -> bool:
        return abs(self.microusd) < SMALLEST * self.recorded["cost_microusd"] or not self.microusd


def simulated_saving(team: Team, of: QuerySet[Session]) -> SimulatedSaving | None:
    """The best version of the newest simulation of any of these sessions, over those that it
    covers, by cost with reading again what it lacks: the one that saves most of those that keep
    what is needed, else the one that keeps most of those that save, else one that costs more or
    changes nothing. None without one."""
    ended = Simulation.objects.for_team(team).ended().order_by("-created")
    recent = list(ended.values_list("pk", flat=True)[:RECENT])
    if not recent:
        return None
    results = SimulationResult.objects.filter(
        simulation__in=recent,
        session__in=of.values("pk"),
        problem="",
    )
    newest = results.order_by("-simulation__created").values_list("simulation", flat=True).first()
    if newest is None:
        return None
    found: dict[int | None, dict[UUID, dict[str, Any]]] = {}
    figures = (f"figures__{name}" for name in _FIGURES)
    rows = results.filter(simulation=newest).values_list("version", "session", *figures)
    for version, session, *values in rows:
        priced = dict(zip(_FIGURES, values, strict=True))
        # The recording paid for its own reading back.
        if version is None or priced["cost_microusd"] is None or charged_cost(priced) is not None:
            found.setdefault(version, {})[session] = priced
    recorded = found.pop(None, {})
    simulation = Simulation.objects.get(pk=newest)
    named = PolicyVersion.objects.filter(policy__team=team).select_related("policy").in_bulk(found)
    savings = [
        SimulatedSaving(
            newest,
            simulation.created,
            str(named[version]),
            len(both),
            len(simulation.sessions),
            compared_sums([sessions[one] for one in both]),
            compared_sums([recorded[one] for one in both]),
        )
        for version, sessions in found.items()
        if version is not None and (both := [one for one in sessions if one in recorded])
    ]
    return max((one for one in savings if _priced(one)), key=_rank, default=None)


def _priced(one: SimulatedSaving) -> bool:
    """Whether the same sessions have a price on both sides."""
    mine, its = one.simulated["priced"], one.recorded["priced"]
    return bool(mine and mine == its)


def _rank(one: SimulatedSaving) -> tuple[bool, bool, bool, bool, float]:
    forgets = one.saves and not one.keeps
    value = one.simulated["in_context"] if forgets else one.microusd
    return one.saves and one.keeps, one.saves, one.differs, one.keeps, value
