"""Simulations of single sessions and of sets of sessions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router

from compaction.policies.policy import InvalidPolicy
from sessions.access import actor_of, require, session_of, team_to, teams_of
from sessions.actions.jobs.jobs import enqueue
from sessions.actions.lab import simulations as asked
from sessions.actions.lab.choices import NoChoice
from sessions.actions.policies.policies import UnknownPolicy, named_version, save_version
from sessions.api.jobs.jobs import job_asked
from sessions.api.lab import shapes
from sessions.api.lab.choices import refused
from sessions.api.lab.simulated import simulation_body, simulation_line, version_of
from sessions.api.web.exchange import json_answer
from sessions.api.web.once import done_once
from sessions.api.web.problems import Refusal
from sessions.models import PolicyVersion, Simulation, Team
from sessions.models.lab.simulations import simulation_key

ROWS_AT_ONCE = 100

router = Router(tags=["Replay"])
lab = Router(tags=["Lab"])


@router.post(
    "sessions/{path:session_id}/simulations",
    response={202: shapes.SimulationAsked},
    url_name="simulate",
)
@done_once
def simulate(request: HttpRequest, session_id: str, wanted: shapes.SimulationIn) -> HttpResponse:
    """Queue a simulation of a policy over a session; returns an unfinished job if there is one."""
    session = session_of(request, session_id)
    version = _version(session.team, wanted.policy, "/policy")
    if not session.step_count:
        raise Refusal(
            422,
            "Nothing to simulate",
            f"Session {session.external_id!r} has no model call yet. Simulate it after its first "
            "step.",
        )
    job = enqueue(
        session.team,
        "simulate",
        {"session": str(session.pk), "policy": str(version)},
        dedupe=simulation_key(session, version.pk),
    )
    return job_asked(job, run=str(version))


def _version(team: Team, ref: str, field: str) -> PolicyVersion:
    try:
        return named_version(team, ref)
    except UnknownPolicy as error:
        raise Refusal(422, "No such policy", f"{ref!r} {error}.", field=field) from None


@lab.get("simulations", response=shapes.SimulationList, url_name="simulations")
def simulations(
    request: HttpRequest,
    after: UUID | None = Query(None, description="`next` of the previous page"),
    limit: int = Query(20, ge=1, le=ROWS_AT_ONCE),
) -> HttpResponse:
    """List simulations, newest first."""
    rows = _rows(request)
    if after is not None:
        last = rows.filter(pk=after).first()
        if last is None:
            raise Refusal(422, "No such place", "Use `next` of the previous page.",
                          field="?after")  # fmt: skip
        rows = rows.filter(created__lt=last.created)
    found = list(rows.order_by("-created", "-pk")[: limit + 1])
    shown, more = found[:limit], len(found) > limit
    return json_answer(
        {
            "simulations": [simulation_line(request, one) for one in shown],
            "next": str(shown[-1].pk) if more else None,
        }
    )


@lab.post("simulations", response={202: shapes.LabSimulationAsked}, url_name="simulations")
@done_once
def ask(request: HttpRequest, wanted: shapes.LabSimulationIn) -> HttpResponse:
    """Queue a simulation of policy versions over recorded sessions.

    A draft given as a document is saved as a version; nothing else changes.
    """
    team = team_to(request, "write")
    draft = _draft(request, team, wanted.draft)
    others = [_version(team, ref, f"/others/{n}") for n, ref in enumerate(wanted.others)]
    choice = wanted.sessions.dict(exclude_none=True)
    try:
        made = asked.ask(team, choice, draft, others, wanted.note, actor_of(request))
    except NoChoice as error:
        raise refused(error, "/sessions/") from None
    assert made.job is not None
    address = request.build_absolute_uri(reverse("simulation", args=[made.pk]))
    return job_asked(made.job, simulation=str(made.pk), draft=str(draft), url=address)


def _draft(request: HttpRequest, team: Team, wanted: str | dict[str, Any]) -> PolicyVersion:
    if isinstance(wanted, str):
        return _version(team, wanted, "/draft")
    name, based_on = (wanted.get(key) or "" for key in ("name", "based_on"))
    document = wanted.get("document")
    if not (isinstance(name, str) and isinstance(based_on, str) and isinstance(document, dict)):
        text = "A draft must be a name, or an object with a document and the name to save it under."
        raise Refusal(422, "Invalid draft", text, field="/draft")
    actor = actor_of(request)
    try:
        return save_version(team, name, document, based_on, "", actor.user, actor)
    except InvalidPolicy as error:
        where = error.field.replace("[", "/").replace("]", "").replace(".", "/")
        raise Refusal(
            422, "Invalid policy", f"{error}.", field=f"/draft/document/{where}"
        ) from None


@lab.get("simulations/{uuid:simulation_id}", response=shapes.SimulationOut, url_name="simulation")
def simulation(request: HttpRequest, simulation_id: UUID, of: str = "") -> HttpResponse:
    """Get a simulation's results so far, over finished sessions; `of=name@3` compares that version
    with what was recorded."""
    found = _simulation(request, simulation_id)
    return json_answer(simulation_body(request, found, version_of(found, of)))


@lab.post(
    "simulations/{uuid:simulation_id}/cancel",
    response=shapes.SimulationLine,
    url_name="simulation_cancel",
)
def cancel(request: HttpRequest, simulation_id: UUID) -> HttpResponse:
    """Cancel a simulation; its results so far are kept. No effect if it had ended."""
    found = _simulation(request, simulation_id)
    require(request, found.team, "write")
    asked.cancel(found)
    return json_answer(simulation_line(request, _simulation(request, simulation_id)))


def _rows(request: HttpRequest) -> Any:
    rows = Simulation.objects.filter(team__in=teams_of(request))
    return rows.select_related("team", "job", "author", "draft__policy", "active__policy")


def _simulation(request: HttpRequest, simulation_id: UUID) -> Simulation:
    found = _rows(request).filter(pk=simulation_id).first()
    if found is None:
        raise Http404("no such simulation")
    assert isinstance(found, Simulation)
    return found
