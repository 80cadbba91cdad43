"""Side by side: the simulated run of one session under one version, stored for its replay."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from sessions.actions.jobs import enqueue
from sessions.actions.policies import UnknownPolicy, named_version
from sessions.api.access import session_of
from sessions.models import PolicyVersion, Run, Session
from sessions.views.places import step_url

DIGITS = 9


@require_POST
def simulate_beside(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Leads to the replay of a session under a version, at a step; simulates it first if need be.

    Form: `version` (name or name@3), `step` (1 where left out). A run that is stored and covers
    the session is shown at once; else the page of the job leads there.
    """
    session = session_of(request, session_id, "write")
    try:
        version = named_version(session.team, request.POST.get("version", ""))
    except UnknownPolicy:
        raise Http404("no such policy version") from None
    step = _step(request.POST.get("step", ""))
    run = _stored(session, version)
    if run is not None:
        return redirect(step_url(session, step, run))
    job = enqueue(
        session.team,
        "simulate",
        {"session": str(session.pk), "policy": str(version), "step": step},
        dedupe=f"simulate:{session.pk}:{version.pk}",
    )
    return redirect("job", job.pk)


def _step(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) <= DIGITS else 1


def _stored(session: Session, version: PolicyVersion) -> Run | None:
    """The run, where it is of all that the session holds now."""
    return session.runs.filter(
        origin=Run.Origin.SIMULATED,
        policy_version=version,
        steps=session.step_count,
        token_ratio=session.token_ratio,
    ).first()
