"""Jobs: work that takes longer than a page, watched, cancelled and tried again."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from sessions.actions.jobs import cancel as cancel_job
from sessions.actions.jobs import retry as retry_job
from sessions.actions.simulations import KIND as SIMULATION
from sessions.actions.tunings import KIND as TUNING
from sessions.actions.uploads import KIND
from sessions.api.access import allowed, require, team_of, teams_of
from sessions.models import Import, ImportFile, Job, Session
from sessions.models.teams import Right
from sessions.templatetags.figures import percent
from sessions.views.paging import page

NAMES = {
    KIND: "Import",
    "simulate": "Simulated replay",
    SIMULATION: "Simulation",
    TUNING: "Search",
    "demo": "Demo sessions",
    "compact": "Compaction",
    "tend": "Tending",
    "assess": "Assessment",
    "share": "Sharing",
}
"""How kinds of jobs are called on pages."""

SECONDS_BEFORE_FORECAST = 5
"""A rate taken from less than this says nothing."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is; rate and rest are None until they mean something."""

    job: Job
    name: str
    share: float | None
    per_second: float | None
    seconds_left: float | None
    seconds: float | None

    @classmethod
    def of(cls, job: Job) -> Progress:
        """As the row says now."""
        total, done = job.total_units, job.done_units
        end = job.finished or timezone.now()
        seconds = (end - job.started).total_seconds() if job.started else None
        rate = left = None
        running = job.state == Job.State.RUNNING
        if running and seconds and seconds >= SECONDS_BEFORE_FORECAST and done:
            rate = done / seconds
            left = (total - done) / rate if total is not None else None
        share = done / total if total else None
        return cls(job, NAMES.get(job.kind, job.kind.capitalize()), share, rate, left, seconds)

    @property
    def title(self) -> str:
        """What the tab says: "42 % · Import", or how it ended."""
        if self.job.state == Job.State.RUNNING and self.share is not None:
            return f"{percent(self.share)} · {self.name}"
        return f"{self.job.get_state_display().lower()} · {self.name}"

    @property
    def may_retry(self) -> bool:
        """Whether it ended without doing what was asked, and another attempt could do it."""
        if self.job.state not in (Job.State.FAILED, Job.State.CANCELLED):
            return False
        if self.job.kind != KIND:
            return True
        waiting = ImportFile.State.WAITING  # an import that has looked at every file is through
        return ImportFile.objects.filter(import_run__job=self.job, state=waiting).exists()


def _job_of(request: HttpRequest, job_id: UUID, right: Right = "read") -> Job:
    found = Job.objects.filter(team__in=teams_of(request), pk=job_id).select_related("team").first()
    if found is None:
        raise Http404("no such job")
    require(request, found.team, right)
    return found


@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """Jobs of the team, newest first."""
    team = team_of(request)
    shown = page(Job.objects.for_team(team), request.GET.get("cursor", ""), "created")
    context = {
        "section": "jobs",
        "team": team,
        "rows": [Progress.of(job) for job in shown.rows],
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
    }
    return render(request, "jobs/list.html", context)


@require_GET
def job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """How far one job is, and how it ended."""
    found = _job_of(request, job_id)
    context = {
        "section": "jobs",
        "team": found.team,
        "job": found,
        "may_write": allowed(request, found.team, "write"),
        "progress": Progress.of(found),
        "links": _links(found),
        "facts": _facts(found),
    }
    return render(request, "jobs/job.html", context)


def _links(job: Job) -> list[tuple[str, str]]:
    """Where what it made, or is about, can be seen."""
    links = []
    import_run = Import.objects.filter(job=job).first()
    if import_run is not None:
        links.append(("Report of the import", reverse("import", args=[import_run.pk])))
    of_others = import_run is not None or job.kind == SIMULATION
    if (job.result or {}).get("sessions") and not of_others:
        links.append(("All sessions", reverse("sessions")))
    if job.kind == SIMULATION:
        address = reverse("simulation", args=[job.payload["simulation"]])
        links.append(("What the simulation found", address))
    if job.kind == TUNING:
        links.append(("What the search found", reverse("tuning", args=[job.payload["tuning"]])))
    session = _session(job)
    if session is not None:
        run = (job.result or {}).get("run")
        address = reverse("replay", args=[session.pk]) + (f"?run={run}" if run else "")
        what = "Simulated replay" if run else "Replay"
        links.append((f"{what} of {session}", address))
    return links


def _session(job: Job) -> Session | None:
    wanted = (job.result or {}).get("session") or job.payload.get("session")
    try:
        return Session.objects.filter(team_id=job.team_id, pk=UUID(str(wanted))).first()
    except ValueError:
        return None


def _facts(job: Job) -> list[tuple[str, int]]:
    """The numbers of the result, named as they are stored."""
    result = job.result or {}
    return [
        (name.replace("_", " "), value)
        for name, value in result.items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]


@require_POST
def cancel(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Ends a job that has not ended yet; its page says how it stands now."""
    found = _job_of(request, job_id, "write")
    cancel_job(found)
    return redirect("job", found.pk)


@require_POST
def retry(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Queues a failed or cancelled job again."""
    found = _job_of(request, job_id, "write")
    retry_job(found)
    return redirect("job", found.pk)
