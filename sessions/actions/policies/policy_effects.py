"""What each policy version did to the team's sessions, simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sessions.models import Run, SimulationResult, Team
from sessions.models.record.demo_data import counts

SIMULATED = 500
"""Most simulations of single sessions to add up, newest first, and as many results of the lab."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a version did to the team's sessions, simulated: relative change of the cost against the
    recorded contexts (None without prices), and the share of needs in context (None without)."""

    sessions: int
    change: float | None
    in_context: float | None


@dataclass(frozen=True, slots=True)
class _Simulated:
    """One session under one version, and what it cost as recorded (None if unknown)."""

    at: datetime
    version: int
    session: UUID
    figures: Mapping[str, Any]
    recorded: int | None


def effects_of(team: Team) -> dict[int, Effect]:
    """The effect of each policy version, by its key: of the newest simulation of each session."""
    found = sorted((*_of_runs(team), *_of_lab(team)), key=lambda one: one.at, reverse=True)
    sums: dict[int, Counter[str]] = {}
    seen: set[tuple[int, UUID]] = set()
    for one in found:
        if "needs" not in one.figures or (one.version, one.session) in seen:
            continue
        seen.add((one.version, one.session))
        of = sums.setdefault(one.version, Counter())
        of["sessions"] += 1
        of["needs"] += one.figures["needs"]
        of["kept"] += one.figures["in_context"] * one.figures["needs"]
        cost = one.figures["cost_microusd"]
        if cost is not None and one.recorded:
            of["cost"] += cost
            of["recorded"] += one.recorded
    return {version: _effect(of) for version, of in sums.items()}


def _of_runs(team: Team) -> Iterator[_Simulated]:
    """Simulations that replay shows."""
    rows = Run.objects.filter(policy_version__policy__team=team, origin=Run.Origin.SIMULATED)
    named = ("created", "policy_version", "session", "figures")
    kept = rows.filter(counts(team.pk, "session__")).order_by("-created").values_list(*named)
    for at, version, session, figures in kept[:SIMULATED]:
        yield _Simulated(at, version, session, figures, figures.get("cost_recorded_microusd"))


def _of_lab(team: Team) -> Iterator[_Simulated]:
    """Results of the lab, beside those of the same sessions as recorded."""
    rows = SimulationResult.objects.filter(counts(team.pk, "session__"), simulation__team=team)
    named = ("simulation__created", "simulation", "session", "version", "figures")
    newest = rows.order_by("-simulation__created", "pk").values_list(*named)[: 2 * SIMULATED]
    found = list(newest)
    recorded = {
        (simulation, session): figures.get("cost_microusd")
        for _, simulation, session, version, figures in found
        if version is None
    }
    for at, simulation, session, version, figures in found:
        if version is not None:
            cost = recorded.get((simulation, session))
            yield _Simulated(at, version, session, figures, cost)


def _effect(found: Counter[str]) -> Effect:
    return Effect(
        found["sessions"],
        found["cost"] / found["recorded"] - 1 if found["recorded"] else None,
        found["kept"] / found["needs"] if found["needs"] else None,
    )
