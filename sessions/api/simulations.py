"""Asking for a simulated run: a job, with the address where it can be watched."""

from __future__ import annotations

from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from compaction.policy import PRESETS
from sessions.actions.jobs import enqueue
from sessions.api.access import session_of
from sessions.api.problems import problem


class _Wanted(msgspec.Struct):
    policy: str


@require_POST
def simulations(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """202 and the job that simulates a preset over a session; the one under way if there is one."""
    session = session_of(request, session_id)
    try:
        wanted = msgspec.json.decode(request.body, type=_Wanted)
    except msgspec.DecodeError as error:
        return problem(400, "Not the JSON that is wanted", f"{error}. Send {{'policy': NAME}}.")
    if wanted.policy not in PRESETS:
        known = ", ".join(PRESETS)
        return problem(422, "No such policy", f"policy must be one of {known}.", field="/policy")
    job = enqueue(
        session.team,
        "simulate",
        {"session": str(session.pk), "policy": wanted.policy},
        dedupe=f"simulate:{session.pk}:{wanted.policy}",
    )
    address = reverse("api:job", args=[job.pk])
    body = {"job": str(job.pk), "job_url": address, "run": wanted.policy}
    return HttpResponse(
        msgspec.json.encode(body),
        status=202,
        content_type="application/json",
        headers={"Location": address},
    )
