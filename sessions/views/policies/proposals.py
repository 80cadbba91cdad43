"""The form that proposes a policy version for rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from compaction.policies.origin import changes
from sessions.access import actor_of, require
from sessions.actions.policies import rollouts as actions
from sessions.actions.policies.bounds import (
    BOUNDS,
    MOST_SESSIONS,
    SESSIONS,
    Bound,
    Guardrail,
    InvalidBound,
    guardrail_of,
)
from sessions.actions.policies.guardrail_findings import reason
from sessions.actions.policies.policies import active_version
from sessions.actions.policies.rollouts import NOTE_LENGTH, CannotRollOut
from sessions.actions.policies.simulated_limits import broken_by
from sessions.api.lab.simulated import compared
from sessions.models import PolicyVersion, Simulation
from sessions.models.policies.rollouts import under_way
from sessions.views.policies.rollout_evidence import remarks_of
from sessions.views.policies.rollouts import version_named
from sessions.views.web.pages import Page

SIMULATIONS = 20
"""Simulations offered as evidence, newest first."""

UNITS = {
    "costlier": ("at most", "% above the other side"),
    "points": ("at most", "points above the other side"),
    "least": ("at least", "%"),
    "most": ("at most", "%"),
}


@dataclass(frozen=True, slots=True)
class LimitField:
    """One limit as the form shows it."""

    bound: Bound
    on: bool
    value: str
    before: str
    after: str


@require_http_methods(["GET", "POST"])
def propose(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Show the proposal form with changes and evidence. POST proposes the version and shows the
    rollout.

    If the simulation speaks against it, the form says so and has to be sent once more.
    """
    version = version_named(request, name, number)
    require(request, version.policy.team, "write")
    problems: dict[str, str] = {}
    if request.method == "POST":
        try:
            guardrail = guardrail_of(_bounds(request.POST))
            simulation = _simulation(version, request.POST.get("simulation", ""))
            against = objections(version, simulation, guardrail)
            if against and "anyway" not in request.POST:
                raise _Unconfirmed
            made = actions.propose(
                version, request.POST.get("note", ""), guardrail, actor_of(request), simulation
            )
        except _Unconfirmed:
            problems["anyway"] = "Not proposed yet."
        except InvalidBound as error:
            problems[error.field] = f"It {error}."
        except CannotRollOut as error:
            problems[error.field or "version"] = str(error)
        else:
            return redirect("rollout", made.pk)
    status = 422 if problems else 200
    return render(
        request,
        "policies/rollouts/propose.html",
        _context(request, version, problems),
        status=status,
    )


class _Unconfirmed(Exception):
    """The simulation speaks against a proposal that is not confirmed."""


def objections(
    version: PolicyVersion, simulation: Simulation | None, guardrail: Guardrail
) -> list[str]:
    """What the simulation of a version already says against it: that it is dominated, and the
    limits it exceeds. Empty without results."""
    if simulation is None or not simulation.versions.filter(pk=version.pk).exists():
        return []
    comparison = compared(simulation, version)
    if not comparison["sessions"] or version.pk == simulation.active_id:
        return []
    verdict = comparison["verdict"]
    found = [verdict["sentence"]] if verdict["dominated"] else []
    broken = broken_by(comparison["sums"], comparison["active_sums"], guardrail)
    return found + [
        f"Its simulation already breaks the guardrail. {reason(one)}." for one in broken
    ]


def _objections(version: PolicyVersion, given: QueryDict, *, posted: bool) -> list[str]:
    """The objections as far as the form is valid."""
    try:
        simulation = _simulation(version, given.get("simulation", ""))
        return objections(version, simulation, guardrail_of(_bounds(given) if posted else {}))
    except (InvalidBound, CannotRollOut):
        return []


def _context(
    request: HttpRequest, version: PolicyVersion, problems: dict[str, str]
) -> dict[str, Any]:
    team = version.policy.team
    active = active_version(team)
    given = request.POST if request.method == "POST" else None
    simulations = Simulation.objects.for_team(team).filter(versions=version).order_by("-created")
    return {
        "section": "policies",
        "team": team,
        "version": version,
        "active": active,
        "is_active": active.pk == version.pk,
        "under_way": under_way(team),
        "changes": changes(active.document, version.document),
        "remarks": remarks_of(version),
        "note": given.get("note", "") if given else "",
        "note_length": NOTE_LENGTH,
        "choices": [_choice(bound, given) for bound in BOUNDS.values()],
        "sessions": given.get("sessions", "") if given else SESSIONS,
        "most_sessions": MOST_SESSIONS,
        "simulations": simulations[:SIMULATIONS],
        "simulation": (given or request.GET).get("simulation", ""),
        "problems": problems,
        "objections": _objections(version, given or request.GET, posted=given is not None),
    }


def _choice(bound: Bound, given: QueryDict | None) -> LimitField:
    on = True if given is None else f"{bound.name}_on" in given
    value = str(bound.default) if given is None else given.get(bound.name, "")
    return LimitField(bound, on, value, *UNITS[bound.kind])


def _bounds(given: QueryDict) -> Guardrail:
    """Parse the limits. Raises InvalidBound for values that are not whole numbers."""
    found: Guardrail = {"sessions": _whole(given, "sessions")}
    for name in BOUNDS:
        found[name] = _whole(given, name) if f"{name}_on" in given else None
    return found


def _whole(given: QueryDict, name: str) -> int:
    said = given.get(name, "").strip()
    if not said.isdecimal() or len(said) > 6:
        raise InvalidBound(name, "must be a whole number")
    return int(said)


def _simulation(version: PolicyVersion, said: str) -> Simulation | None:
    """The simulation with that id. Raises CannotRollOut."""
    if not said:
        return None
    try:
        rows = Simulation.objects.for_team(version.policy.team)
        found = rows.filter(pk=UUID(said)).first()
    except ValueError:
        found = None
    if found is None:
        raise CannotRollOut("There is no such simulation. Choose another one.", "simulation")
    return found


PAGES = (
    Page(
        route="policies/<str:name>/<int:number>/propose/",
        query=("simulation",),
        view=propose,
        name="propose",
        needs={"GET": "write", "POST": "write"},
    ),
)
