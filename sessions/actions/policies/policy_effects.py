"""What each policy version did to the team's sessions, simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef

from sessions.figures import day
from sessions.models import Run, Simulation, SimulationResult, Team
from sessions.models.lab.charged_sums import charged_cost
from sessions.models.record.demo_data import counts

SIMULATED = 500
"""Most replays of single sessions to add up, and versions of simulations to look at, newest
first."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a version did to the team's sessions, simulated.

    `change` and `tokens` are relative changes of the cost including reading back (None without
    prices) and of the tokens sent, `in_context` the share of needs in context (None without). The
    change is against what was recorded, or against another version. `simulation` is the newest in
    the lab, if any; `when` says when these sessions were simulated.
    """

    sessions: int
    change: float | None
    in_context: float | None
    tokens: float | None = None
    simulation: UUID | None = None
    when: str = ""


@dataclass(frozen=True, slots=True)
class RecordedFigures:
    """What was recorded in the sessions of the lab's simulations: sums; None if unknown. Of the
    cost, `estimated_microusd` is that of the `estimated` sessions in which no call reported
    usage; `unpriced` sessions have no known cost. `needs` counts the uses of facts that
    `in_context` is a share of. `when` is that of an effect."""

    sessions: int
    cost_microusd: int | None
    in_context: float | None
    estimated: int = 0
    estimated_microusd: int = 0
    unpriced: int = 0
    needs: int = 0
    when: str = ""


@dataclass(frozen=True, slots=True)
class Effects:
    """What policies did to a team's sessions: `recorded` without any, `of` each version against
    that, and `against_active` the same over the sessions that the active one has too, in points of
    recall; `pair` the first of two versions against the second. Versions are named by their
    keys."""

    recorded: RecordedFigures | None
    of: Mapping[int, Effect]
    against_active: Mapping[int, Effect]
    pair: Effect | None = None


@dataclass(frozen=True, slots=True)
class _Simulated:
    """One session under one version, and what it cost as recorded (None if unknown)."""

    at: datetime
    version: int | None
    session: UUID
    figures: Mapping[str, Any]
    recorded: int | None
    simulation: UUID | None = None


_Sessions = dict[UUID, _Simulated]
_Found = dict[tuple[UUID | None, int | None], _Sessions]
"""Sessions by the simulation (None for replays) and the version (None as recorded)."""


def effects_of(
    team: Team, active: int | None = None, pair: tuple[int, int] | None = None
) -> Effects:
    """The effect of each policy version in the newest simulation that has it, so that its figures
    are those of that simulation's page; without one, in the replays of single sessions. `active` is
    the key of the version to set the others against, and `pair` those of two to compare."""
    simulations = _newest(team)
    found = _of_runs(team) | _of_lab(team, simulations)
    latest = next(iter(simulations.values()), None)

    def of(version: int, beside: int) -> _Sessions:
        """A version's sessions in the simulation that another has its figures from."""
        return found.get((simulations.get(beside), version), {})

    def against(version: int, other: int) -> Effect | None:
        mine, its = of(version, version), of(other, version)
        both = [(mine[one], its[one]) for one in mine if one in its]
        return _against(both) if both else None

    versions = {version for place, version in found if version is not None}
    shown = {one: rows for one in versions if (rows := of(one, one))}
    beside = {one: against(one, active) for one in shown if active not in (None, one)}
    return Effects(
        _recorded(list(found.get((latest, None), {}).values())),
        {version: _effect(rows.values()) for version, rows in shown.items()},
        {version: effect for version, effect in beside.items() if effect is not None},
        against(*pair) if pair else None,
    )


def _newest(team: Team) -> dict[int, UUID]:
    """The newest simulation of each version, the newest first, of those that have ended with a
    result of a session that counts."""
    results = SimulationResult.objects.filter(
        counts(team.pk, "session__"), simulation=OuterRef("pk"), problem="", version__isnull=False
    )
    rows = Simulation.objects.for_team(team).ended().filter(Exists(results))
    newest: dict[int, UUID] = {}
    named = rows.order_by("-created", "versions").values_list("versions", "pk")
    for version, simulation in named[:SIMULATED]:
        newest.setdefault(version, simulation)
    return newest


def _of_runs(team: Team) -> _Found:
    """Simulations that replay shows, the newest of each session."""
    rows = Run.objects.filter(policy_version__policy__team=team, origin=Run.Origin.SIMULATED)
    named = ("created", "policy_version", "session", "figures")
    kept = rows.filter(counts(team.pk, "session__")).order_by("-created").values_list(*named)
    found: _Found = {}
    for at, version, session, figures in kept[:SIMULATED]:
        one = _Simulated(at, version, session, figures, figures.get("cost_recorded_microusd"))
        if "needs" in figures:
            found.setdefault((None, version), {}).setdefault(session, one)
    return found


def _of_lab(team: Team, simulations: Mapping[int, UUID]) -> _Found:
    """Results of these simulations, beside those of the same sessions as recorded."""
    rows = SimulationResult.objects.filter(
        counts(team.pk, "session__"), simulation__in=set(simulations.values()), problem=""
    )
    named = ("simulation__created", "simulation", "session", "version", "figures")
    results = list(rows.values_list(*named))
    recorded = {
        (simulation, session): figures.get("cost_microusd")
        for _, simulation, session, version, figures in results
        if version is None
    }
    found: _Found = {}
    for at, simulation, session, version, figures in results:
        cost = recorded.get((simulation, session))
        one = _Simulated(at, version, session, figures, cost, simulation)
        if "needs" in figures:
            found.setdefault((simulation, version), {})[session] = one
    return found


def _effect(found: Iterable[_Simulated]) -> Effect:
    """Sessions under a version against what was recorded in them."""
    rows = list(found)
    of: Counter[str] = Counter()
    for one in rows:
        of.update(_needs(one))
        of["sent"] += one.figures.get("tokens_sent", 0)
        of["sent_recorded"] += one.figures.get("tokens_sent_recorded", 0)
        cost = charged_cost(one.figures)
        if cost is not None and one.recorded:
            of["cost"] += cost
            of["recorded"] += one.recorded
    return Effect(
        len(rows),
        _change(of["cost"], of["recorded"]),
        of["kept"] / of["needs"] if of["needs"] else None,
        _change(of["sent"], of["sent_recorded"]),
        next((one.simulation for one in rows if one.simulation), None),
        _when(rows),
    )


def _against(pairs: Sequence[tuple[_Simulated, _Simulated]]) -> Effect:
    """Sessions under two versions: the first against the second."""
    mine, its = (Counter[str](), Counter[str]())
    for one, other in pairs:
        costs = charged_cost(one.figures), charged_cost(other.figures)
        for of, each, cost in ((mine, one, costs[0]), (its, other, costs[1])):
            of.update(_needs(each))
            of["sent"] += each.figures.get("tokens_sent", 0)
            of["cost"] += 0 if None in costs else cost or 0
    both = mine["needs"] and its["needs"]
    return Effect(
        len(pairs),
        _change(mine["cost"], its["cost"]),
        mine["kept"] / mine["needs"] - its["kept"] / its["needs"] if both else None,
        _change(mine["sent"], its["sent"]),
        next((one.simulation for one, _ in pairs if one.simulation), None),
        _when([one for pair in pairs for one in pair]),
    )


def _recorded(rows: Sequence[_Simulated]) -> RecordedFigures | None:
    if not rows:
        return None
    costs = [one.recorded for one in rows if one.recorded is not None]
    guessed = [
        one.recorded
        for one in rows
        if one.recorded is not None and one.figures.get("cost_reported") is False
    ]
    of: Counter[str] = Counter()
    for one in rows:
        of.update(_needs(one))
    return RecordedFigures(
        len(rows),
        sum(costs) if costs else None,
        of["kept"] / of["needs"] if of["needs"] else None,
        len(guessed),
        sum(guessed),
        len(rows) - len(costs),
        of["needs"],
        _when(rows),
    )


def _when(rows: Sequence[_Simulated]) -> str:
    """When these were simulated: "Nov 2", or "Oct 30 – Nov 2, in replays"."""
    first, last = (day(end(one.at for one in rows)) for end in (min, max))
    said = first if first == last else f"{first} – {last}"
    return said if rows[0].simulation else f"{said}, in replays"


def _needs(one: _Simulated) -> dict[str, Any]:
    needs = one.figures["needs"]
    return {"needs": needs, "kept": (one.figures.get("in_context") or 0) * needs}


def _change(mine: int, its: int) -> float | None:
    return mine / its - 1 if its else None
