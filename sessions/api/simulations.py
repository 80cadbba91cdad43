"""Asking for a simulated run: a job, with the address where it can be watched."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

from compaction.policy import PRESETS
from sessions.actions.jobs import enqueue
from sessions.api import incoming, shapes
from sessions.api.access import session_of
from sessions.api.answers import done_once
from sessions.api.curves import curves
from sessions.api.jobs import job_asked
from sessions.api.problems import Refusal

router = Router(tags=["Replay"])
lab = Router(tags=["Lab"])


@lab.get("simulations/curves", response=shapes.Curves, url_name="curves")
def simulation_curves(request: HttpRequest, choice: Query[incoming.Choice]) -> HttpResponse:
    """Gives sizes of chosen sessions by step, without content: what sliders are drawn from.

    Chosen as for a simulation; lists repeat their name.
    """
    return curves(request, choice)


@router.post(
    "sessions/{path:session_id}/simulations",
    response={202: shapes.SimulationAsked},
    url_name="simulate",
)
@done_once
def simulate(
    request: HttpRequest, session_id: str, wanted: incoming.SimulationWanted
) -> HttpResponse:
    """Asks what another policy would have made of a session; the job under way if there is one."""
    session = session_of(request, session_id)
    if wanted.policy not in PRESETS:
        known = ", ".join(PRESETS)
        raise Refusal(422, "No such policy", f"It must be one of {known}.", field="/policy")
    job = enqueue(
        session.team,
        "simulate",
        {"session": str(session.pk), "policy": wanted.policy},
        dedupe=f"simulate:{session.pk}:{wanted.policy}",
    )
    return job_asked(job, run=wanted.policy)
