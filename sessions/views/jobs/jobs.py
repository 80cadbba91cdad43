"""Jobs: list, watch, cancel, retry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Min
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from sessions.access import allowed, require, team_of, teams_of
from sessions.actions.accounts.teams import LOCAL_TEAM
from sessions.actions.imports.uploads import KIND
from sessions.actions.jobs.jobs import cancel as cancel_job
from sessions.actions.jobs.jobs import retry as retry_job
from sessions.actions.lab.simulations import KIND as SIMULATION
from sessions.actions.lab.tunings import KIND as TUNING
from sessions.actions.record.verify import last_check
from sessions.figures import percent
from sessions.models import Import, ImportFile, Job, Session, Simulation, Team, Tuning
from sessions.models.accounts.teams import Right
from sessions.views.web.pages import Link, Page
from sessions.views.web.paging import page

NAMES = {
    KIND: "Import",
    "simulate": "Simulated replay",
    SIMULATION: "Simulation",
    TUNING: "Auto-tune",
    "demo": "Demo sessions",
    "demo-removal": "Removal of the demo",
    "compact": "Compaction",
    "tend": "Managed context update",
    "assess": "Session assessment",
    "share": "Summary shared",
    "masking": "Dry run of masking rules",
    "verify": "Store check",
    "notify": "Notification",
}
"""Names of job kinds on pages."""


def job_name(kind: str) -> str:
    """The name of a kind of job on pages."""
    return NAMES.get(kind, kind.capitalize())


SECONDS_BEFORE_FORECAST = 5
"""Minimum seconds of progress before a rate is shown."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a job; rate and time left are None until they are meaningful."""

    job: Job
    name: str
    share: float | None
    per_second: float | None
    seconds_left: float | None
    seconds: float | None

    @classmethod
    def of(cls, job: Job) -> Progress:
        """Compute the progress from the job's row."""
        total, done = job.total_units, job.done_units
        end = job.finished or timezone.now()
        seconds = (end - job.started).total_seconds() if job.started else None
        rate = left = None
        running = job.state == Job.State.RUNNING
        if running and seconds and seconds >= SECONDS_BEFORE_FORECAST and done:
            rate = done / seconds
            left = (total - done) / rate if total is not None else None
        share = done / total if total else None
        return cls(job, job_name(job.kind), share, rate, left, seconds)

    @property
    def title(self) -> str:
        """The page title: "42 % · Import", or the final state."""
        if self.job.state == Job.State.RUNNING and self.share is not None:
            return f"{percent(self.share)} · {self.name}"
        return f"{self.job.get_state_display().lower()} · {self.name}"

    @property
    def may_retry(self) -> bool:
        """Whether it ended unsuccessfully and could succeed on another attempt."""
        if self.job.state not in (Job.State.FAILED, Job.State.CANCELLED):
            return False
        if self.job.kind != KIND:
            return True
        waiting = ImportFile.State.WAITING  # an import that has read every file is complete
        return ImportFile.objects.filter(import_run__job=self.job, state=waiting).exists()


def _job_of(request: HttpRequest, job_id: UUID, right: Right = "read") -> Job:
    found = Job.objects.filter(team__in=teams_of(request), pk=job_id).select_related("team").first()
    if found is None:
        raise Http404("no such job")
    require(request, found.team, right)
    return found


@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """List the team's jobs, newest first."""
    team = team_of(request)
    shown = page(Job.objects.for_team(team), request.GET.get("cursor", ""), "created")
    about = _about(team, shown.rows)
    context = {
        "section": "jobs",
        "team": team,
        "rows": [(Progress.of(job), about.get(job.pk)) for job in shown.rows],
        "check": last_check() if team.slug == LOCAL_TEAM else None,
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
    }
    return render(request, "jobs/list.html", context)


def _about(team: Team, rows: Iterable[Job]) -> dict[UUID, str]:
    """The session, policy or files that each job is about, if it is about any."""
    wanted = {job.pk: _session_id(job) for job in rows}
    sessions = Session.objects.for_team(team).in_bulk([one for one in wanted.values() if one])
    found = {job: str(sessions[one]) for job, one in wanted.items() if one in sessions}
    simulations = Simulation.objects.filter(team=team, job__in=wanted).select_related(
        "draft__policy"
    )
    found |= {one.job_id: str(one.draft) for one in simulations if one.job_id}
    imports = Import.objects.filter(team=team, job__in=wanted, files__isnull=False)
    for run, first, many in imports.values_list("job").annotate(Min("files__path"), Count("files")):
        found[run] = f"{first} and {many - 1} more" if many > 1 else first
    return found


@require_GET
def job(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Show the progress and result of one job."""
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
    """Links to what the job made or is about."""
    links = []
    import_run = Import.objects.filter(job=job).first()
    if import_run is not None:
        links.append(("Import report", reverse("import", args=[import_run.pk])))
    of_others = import_run is not None or job.kind == SIMULATION
    if (job.result or {}).get("sessions") and not of_others:
        links.append(("All sessions", reverse("sessions")))
    if job.kind == SIMULATION:
        address = reverse("simulation", args=[job.payload["simulation"]])
        links.append(("Simulation results", address))
    if job.kind == TUNING:
        tuning = Tuning.objects.select_related("base__policy").filter(job=job).first()
        of = f" of {tuning.base}" if tuning is not None else ""
        links.append((f"Auto-tune results{of}", reverse("tuning", args=[job.payload["tuning"]])))
    session = _session(job)
    if session is not None:
        run = (job.result or {}).get("run")
        address = reverse("replay", args=[session.pk]) + (f"?run={run}" if run else "")
        what = "Simulated replay" if run else "Replay"
        links.append((f"{what} of {session}", address))
    return links


def _session_id(job: Job) -> UUID | None:
    try:
        return UUID(str((job.result or {}).get("session") or job.payload.get("session")))
    except ValueError:
        return None


def _session(job: Job) -> Session | None:
    wanted = _session_id(job)
    return Session.objects.filter(team_id=job.team_id, pk=wanted).first() if wanted else None


def _facts(job: Job) -> list[tuple[str, int]]:
    """The numbers in the result, by name."""
    result = job.result or {}
    return [
        (name.replace("_", " "), value)
        for name, value in result.items()
        if isinstance(value, int) and not isinstance(value, bool)
    ]


@require_POST
def cancel(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Cancel an unfinished job."""
    found = _job_of(request, job_id, "write")
    cancel_job(found)
    return redirect("job", found.pk)


@require_POST
def retry(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """Queue a failed or cancelled job again."""
    found = _job_of(request, job_id, "write")
    retry_job(found)
    return redirect("job", found.pk)


PAGES = (
    Page(
        route="jobs/",
        query=("cursor",),
        view=jobs,
        name="jobs",
        link=Link(100, "Jobs", "jobs", "g j", "jobs", "Manage"),
        about="queued, running, failed and done jobs, progress",
    ),
    Page(route="jobs/<uuid:job_id>/", view=job, name="job"),
    Page(
        route="jobs/<uuid:job_id>/cancel/", view=cancel, name="job_cancel", needs={"POST": "write"}
    ),
    Page(route="jobs/<uuid:job_id>/retry/", view=retry, name="job_retry", needs={"POST": "write"}),
)
