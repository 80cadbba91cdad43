"""Imports: upload, and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Min, Q, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from sessions.access import actor_of, allowed, require, team_of, teams_of
from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.uploads import FILES_AT_ONCE, begin_upload
from sessions.importers import MOST_USED_FIRST
from sessions.models import Blob, Import, ImportFile, Session, SkippedRecord, Team
from sessions.models.record.values import content_of
from sessions.models.web.shown import contents
from sessions.views.jobs.jobs import Progress
from sessions.views.web.pages import Link, Page
from sessions.views.web.paging import page
from sessions.views.web.reached import reached

FILES_SHOWN = 500
RECORDS_SHOWN = 100
RECORD_CHARS = 4000
"""Most code points of a skipped record shown on a page."""

TOTALS = ("sessions", "messages", "new_messages", "calls", "tool_calls", "compactions", "skipped")


@require_http_methods(["GET", "HEAD", "POST"])
def imports(request: HttpRequest) -> HttpResponse:
    """List past imports with an upload form; POST starts an import and shows its report."""
    team = team_of(request)
    problem = ""
    if request.method == "POST":
        require(request, team, "write")
        files, chosen = request.FILES.getlist("files"), request.POST.get("if_changed", "")
        if_changed = IfChanged(chosen) if chosen in list(IfChanged) else IfChanged.KEEP
        if if_changed == IfChanged.REPLACE:
            require(request, team, "accept")
        if files:
            made = begin_upload(team, files, actor_of(request), if_changed)
            return redirect("import", made.pk)
        problem = "No file received. Choose at least one."
    rows = (
        Import.objects.filter(team=team)
        .select_related("job")
        .annotate(
            file_count=Count("files"),
            first_path=Min("files__path"),
            refused=Count("files", filter=Q(files__state=ImportFile.State.REFUSED)),
            waiting=Count("files", filter=Q(files__state=ImportFile.State.WAITING)),
            **{f"sum_{name}": Sum(f"files__{name}", default=0) for name in TOTALS},
        )
    )
    shown = page(rows, request.GET.get("cursor", ""), "created")
    context = {
        "section": "imports",
        "team": team,
        **reached(request, team),
        "problem": problem,
        "may_write": allowed(request, team, "write"),
        "may_replace": allowed(request, team, "accept"),
        "upload_limit": settings.UPLOAD_LIMIT,
        "upload_files": FILES_AT_ONCE,
        "importers": MOST_USED_FIRST,
        "rows": [
            (row, state_of(row, row.waiting, row.refused, row.file_count)) for row in shown.rows
        ],
        "newer_url": f"?cursor={shown.newer}" if shown.newer else "",
        "older_url": f"?cursor={shown.older}" if shown.older else "",
    }
    return render(request, "imports/list.html", context, status=422 if problem else 200)


def state_of(import_run: Import, waiting: int, refused: int, files: int) -> str:
    """The state of an import: its job's, or derived from its files if a command ran it."""
    if import_run.job is not None:
        return import_run.job.state
    if waiting:
        return "unfinished"
    return "failed" if refused == files else "partial" if refused else "done"


@dataclass(frozen=True, slots=True)
class File:
    """One file of a report with its sessions."""

    row: ImportFile
    sessions: list[tuple[UUID, str]]


def _import_of(request: HttpRequest, import_id: UUID) -> tuple[Team, Import]:
    teams = teams_of(request)
    found = Import.objects.filter(team__in=teams, pk=import_id).select_related("job", "team")
    if not found:
        raise Http404("no such import")
    return found[0].team, found[0]


@require_GET
def report(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """Show what an import found in each file, what was new, and what was skipped and why."""
    team, import_run = _import_of(request, import_id)
    sums = import_run.files.aggregate(
        file_count=Count("pk"),
        refused=Count("pk", filter=Q(state=ImportFile.State.REFUSED)),
        waiting=Count("pk", filter=Q(state=ImportFile.State.WAITING)),
        known=Count("pk", filter=Q(state=ImportFile.State.KNOWN)),
        **{name: Sum(name, default=0) for name in TOTALS},
    )
    state = state_of(import_run, sums["waiting"], sums["refused"], sums["file_count"])
    files = _files(team, import_run)
    context = {
        "section": "imports",
        "team": team,
        "import_run": import_run,
        "may_write": allowed(request, team, "write"),
        "job": import_run.job,
        "progress": Progress.of(import_run.job) if import_run.job else None,
        "state": state,
        "sums": sums,
        "files": files,
        "skipped": _skipped(import_run),
        "files_shown": FILES_SHOWN,
        "linked": any(file.sessions for file in files),
    }
    return render(request, "imports/report.html", context)


def _files(team: Team, import_run: Import) -> list[File]:
    # Refused files first.
    rows = list(import_run.files.order_by("pk")[:FILES_SHOWN])
    rows.sort(key=lambda row: row.state != ImportFile.State.REFUSED)
    ids = [UUID(pk) for row in rows for pk in row.found][:900]
    names = {
        session.pk: str(session) for session in Session.objects.for_team(team).filter(pk__in=ids)
    }
    return [
        File(row, [(pk, names[pk]) for pk in map(UUID, row.found) if pk in names]) for row in rows
    ]


def _skipped(import_run: Import) -> list[dict[str, Any]]:
    """Skipped records of all files by reason and type, unknown types first."""
    kinds: dict[tuple[str, str], dict[str, Any]] = {}
    for record in SkippedRecord.objects.filter(file__import_run=import_run).order_by("pk"):
        kind = kinds.setdefault(
            (record.reason, record.type),
            {"reason": record.reason, "type": record.type, "count": 0, "files": 0, "kept": 0},
        )
        kind["count"] += record.count
        kind["files"] += 1
        kind["kept"] += len(record.lines)
        if record.lines:
            kind.setdefault("first", record.pk)
    return sorted(kinds.values(), key=lambda kind: (not kind["kept"], -kind["count"]))


@require_GET
def skipped(request: HttpRequest, import_id: UUID, record_id: int) -> HttpResponse:
    """Show the records of all files with this record's type and reason."""
    team, import_run = _import_of(request, import_id)
    record = (
        SkippedRecord.objects.select_related("file")
        .filter(file__import_run=import_run, pk=record_id)
        .first()
    )
    if record is None:
        raise Http404("no such record")
    alike = SkippedRecord.objects.select_related("file").filter(
        file__import_run=import_run, type=record.type, reason=record.reason
    )
    kept = [(one.file.path, line, sha) for one in alike for line, sha in one.lines]
    shown = kept[:RECORDS_SHOWN]
    shas = [sha for _, _, sha in shown]
    rows = Blob.objects.filter(team=team, sha__in=shas).values_list("sha", "packed", "data")
    blobs = contents(team.pk, {row[0]: content_of(*row) for row in rows})
    context = {
        "section": "imports",
        "team": team,
        "import_run": import_run,
        "record": record,
        "count": sum(one.count for one in alike),
        "records": [(path, line, *_text(blobs[sha])) for path, line, sha in shown if sha in blobs],
    }
    return render(request, "imports/skipped.html", context)


def _text(data: bytes) -> tuple[str, int]:
    """A record as text for a page, and the number of code points omitted."""
    text = data.decode("utf-8", "replace").replace("\x00", "␀")
    return text[:RECORD_CHARS], max(0, len(text) - RECORD_CHARS)


PAGES = (
    Page(
        route="imports/",
        query=("cursor",),
        view=imports,
        name="imports",
        needs={"POST": "write"},
        link=Link(90, "Import", "import", "g i", "imports", "Manage"),
        about="upload files, logs, past imports",
    ),
    Page(route="imports/<uuid:import_id>/", view=report, name="import"),
    Page(
        route="imports/<uuid:import_id>/skipped/<int:record_id>/",
        view=skipped,
        name="import_skipped",
    ),
)
