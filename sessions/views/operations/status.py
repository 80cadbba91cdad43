"""The server's state, for those who run it."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from sessions.access import actor_of, require_operator, team_of
from sessions.actions.accounts import audit
from sessions.actions.jobs.jobs import retry as retry_job
from sessions.actions.operations import status as found
from sessions.models import Job
from sessions.views.jobs.jobs import job_name
from sessions.views.web.pages import Page

NUMBER = "number"
COLUMNS = {
    "queues": [
        ("Queue", ""),
        ("Queued", NUMBER),
        ("Running", NUMBER),
        ("Oldest queued", NUMBER),
        ("Kinds", ""),
    ],
    "processes": [
        ("Process", ""),
        ("State", ""),
        ("Version", ""),
        ("Started", NUMBER),
        ("Last seen", NUMBER),
    ],
    "failed": [("Job", ""), ("Team", ""), ("Reason", ""), ("Failed", NUMBER), ("Retry", "")],
    "storage": [("Team", ""), ("Content", NUMBER), ("Blobs", NUMBER), ("Quotas", "")],
    "queries": [("Query", ""), ("Times", NUMBER), ("Mean", NUMBER), ("Worst", NUMBER)],
    "requests": [("Route", ""), ("Times", NUMBER), ("Mean", NUMBER), ("Slow", NUMBER)],
}


@require_GET
def status(request: HttpRequest) -> HttpResponse:
    """Show queues, processes, storage, slow queries and failed jobs of all teams."""
    require_operator(request)
    slow = found.slow()
    context = {
        "section": "settings",
        "page": "status",
        "team": team_of(request),
        "queues": [
            row | {"kinds": [(job_name(kind), count) for kind, count in row["kinds"].items()]}
            for row in found.queues()
        ],
        "processes": found.processes(),
        "storage": found.storage(),
        "slow": slow,
        "columns": COLUMNS | {"slow": COLUMNS[slow["of"]]},
        "slow_seconds": found.SLOW_SECONDS,
        "failed": [(job, job_name(job.kind)) for job in found.failed()],
        "failed_days": found.FAILED_DAYS,
        "late_seconds": found.LATE.total_seconds(),
    }
    return render(request, "operations/status.html", context)


@require_POST
def retry(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Queue a failed job of any team again; its team's audit log says so."""
    require_operator(request)
    job = Job.objects.filter(pk=job_id).select_related("team").first()
    if job is None:
        raise Http404("no such job")
    with transaction.atomic():
        if retry_job(job):
            audit.note(job.team, actor_of(request), "job.retried", str(job.pk), kind=job.kind)
            messages.success(request, f"{job_name(job.kind)} is queued again.")
    return redirect("status")


PAGES = (
    Page(route="settings/server/", view=status, name="status", needs={"GET": None}),
    Page(
        route="settings/server/jobs/<uuid:job_id>/retry/",
        view=retry,
        name="status_retry",
        needs={"POST": None},
    ),
)
