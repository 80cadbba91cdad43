"""One job as data: how far it is, and how it ended."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from sessions.api.access import team_of
from sessions.models import Job


def job_body(job: Job) -> dict[str, Any]:
    """A job as the API and its page's island read it; times are ISO 8601 in UTC."""
    return {
        "id": str(job.pk),
        "kind": job.kind,
        "state": job.state,
        "attempts": job.attempts,
        "done_units": job.done_units,
        "total_units": job.total_units,
        "unit": job.unit,
        "result": job.result,
        "problem": job.problem,
        "version": job.version,
        "created": job.created.isoformat(),
        "started": job.started.isoformat() if job.started else None,
        "finished": job.finished.isoformat() if job.finished else None,
    }


@require_GET
def job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """The state of a job of the asker's team."""
    found = Job.objects.for_team(team_of(request)).filter(pk=job_id).first()
    if found is None:
        raise Http404("no such job")
    return HttpResponse(msgspec.json.encode(job_body(found)), content_type="application/json")
