"""Jobs: progress and result."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router

from sessions.access import teams_of
from sessions.api.jobs import shapes
from sessions.api.web.exchange import json_answer
from sessions.models import Job

router = Router(tags=["Jobs"])


def job_body(job: Job) -> dict[str, Any]:
    """A job as JSON, for the API and its page; times are ISO 8601 in UTC."""
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


def job_asked(job: Job, **more: Any) -> HttpResponse:
    """A 202 response for a queued job, with its URL."""
    address = reverse("api:job", args=[job.pk])
    return json_answer({"job": str(job.pk), "job_url": address, **more}, 202, {"Location": address})


@router.get("jobs/{uuid:job_id}", response=shapes.JobOut, url_name="job")
def job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Get a job's progress and result."""
    found = Job.objects.filter(team__in=teams_of(request), pk=job_id).first()
    if found is None:
        raise Http404("no such job")
    return json_answer(job_body(found))
