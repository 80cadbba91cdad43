"""Traces: requests that wait are read as one, so that a trace whose spans come late is written
again once, and not for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.imports import import_file, refuse, run_import
from sessions.actions.imports.opened import is_archive, logs_in, read_log
from sessions.actions.imports.parts import (
    ExporterTurn,
    are_waiting,
    exported_jobs,
    first_part,
    keep_parts,
    named_together,
)
from sessions.actions.imports.traced_known import stored_until
from sessions.actions.jobs import jobs, leases
from sessions.actions.jobs.attempts import Running
from sessions.actions.jobs.wakes import wake
from sessions.actions.record.prepare import Count
from sessions.importers.decoded import NotALog
from sessions.importers.records import Json
from sessions.importers.traces.otlp import FORMAT
from sessions.importers.traces.requests import parts_of, request_in
from sessions.models import Import, ImportFile, Job
from sessions.models.record import objects

MOST, MOST_BYTES = 100, 16 * 1024 * 1024
"""Requests that are read as one, and bytes of them (our choice: a fraction of a second)."""


def is_another_running(running: Running) -> bool:
    """Whether another job of the team's exporters began before this one. It takes the requests of
    this one along, if they are not read in part: two would write to the same groups."""
    job = running.job
    others = exported_jobs(running).filter(state=Job.State.RUNNING)
    earlier = Q(started__lt=job.started) | Q(started=job.started, pk__lt=job.pk)
    return others.exclude(lease_until=leases.ENDED).filter(earlier).exists()


def wake_waiting(running: Running) -> bool:
    """Let a request begin that waits for this job, first one that was not read in part; return
    whether there is one."""
    waiting = exported_jobs(running).filter(state=Job.State.QUEUED).order_by("created")
    job = waiting.filter(result__isnull=True).first() or waiting.first()
    if job is None:
        return False
    Job.objects.filter(pk=job.pk).update(wake_after=timezone.now())
    wake(job.pk, job.kind, 1)
    return True


def import_exported(
    running: Running, import_run: Import, count: Count, if_changed: IfChanged
) -> None:
    """Import the requests of a job, and those that wait for others by then. Raises PartEnded,
    jobs.Lost."""
    turn, is_first = ExporterTurn(running), running.job.attempts == 1
    if not is_first:
        give_back(running, import_run)
    while True:
        is_all = False
        if not first_part(running):
            if is_first:
                take_along(running, import_run)
            is_all = import_together(running, import_run, count, if_changed)
        first = first_part(running)
        if first or is_all:
            progress = partial(running.progress, unit="files")
            run_import(import_run, count, progress, if_changed, turn, first)
        if first:
            running.keep(None)
        if import_run.files.filter(state=ImportFile.State.WAITING).exists():
            turn()
        elif not is_first or turn.is_long or not are_waiting(running):
            return


def take_along(running: Running, import_run: Import) -> None:
    """Take over the requests of exporters that wait for jobs of their own. Raises jobs.Lost."""
    waiting = exported_jobs(running).filter(state=Job.State.QUEUED, result__isnull=True)
    with transaction.atomic():
        mine = Job.objects.select_for_update(of=("self",)).filter(pk=running.job.pk)
        if not mine.filter(token=running.token, state=Job.State.RUNNING).first():
            raise jobs.Lost
        # What failed once is tried alone.
        new = waiting.filter(attempts=0).order_by("created")
        taken = [one.pk for one in new.select_for_update(skip_locked=True, of=("self",))[:MOST]]
        theirs = [one.pk for one in Import.objects.filter(job__in=taken)]
        ImportFile.objects.filter(import_run__in=theirs).update(import_run=import_run)
        Import.objects.filter(pk__in=theirs).delete()
        Job.objects.filter(pk__in=taken).delete()


def give_back(running: Running, import_run: Import) -> None:
    """Leave the first file that waits, because one of them failed. Of parts that was the first, and
    one other job has the rest; of requests it may be any, and each gets a job of its own."""
    waiting = import_run.files.filter(state=ImportFile.State.WAITING).order_by("pk")
    first = first_part(running)
    failed = waiting.filter(pk__gte=first).first()
    others = [one for one in waiting if one != failed]
    if first and others:
        _give_job(running, others, attempts=0, result=running.job.result)
        return
    for file in others:
        _give_job(running, [file], attempts=1, result=None)


def _give_job(
    running: Running, files: Sequence[ImportFile], attempts: int, result: dict[str, Any] | None
) -> None:
    with transaction.atomic():
        other = Import.objects.create(team=running.team)
        payload = running.payload | {"import": str(other.pk)}
        other.job = jobs.enqueue(running.team, running.job.kind, payload)
        other.save(update_fields=["job"])
        Job.objects.filter(pk=other.job.pk).update(attempts=attempts, result=result)
        ImportFile.objects.filter(pk__in=[one.pk for one in files]).update(import_run=other)


def import_together(
    running: Running, import_run: Import, count: Count, if_changed: IfChanged
) -> bool:
    """Import waiting requests as one, with one report, or store them in parts if they have many
    calls; files that are no requests are left. Returns whether those were all. Raises jobs.Lost."""
    requests, is_all = _requests(import_run)
    stored = partial(stored_until, running.team, FORMAT)
    files, parts = list(requests), parts_of(requests.values(), stored)
    if len(parts) > 1:
        keep_parts(running, import_run, files, parts)
    elif files:
        first, *others = files
        first.path = named_together(files)
        import_file(import_run.team, first, lambda: parts[0], count, if_changed)
        objects.remove(objects.uploaded(file.stored for file in others))
        ImportFile.objects.filter(pk__in=[file.pk for file in others]).delete()
    return is_all


def _requests(import_run: Import) -> tuple[dict[ImportFile, dict[str, Json]], bool]:
    """The first requests that wait, in their JSON form, and whether those are all; one with more
    values than any exporter's is refused."""
    found: dict[ImportFile, dict[str, Json]] = {}
    size = 0
    for file in import_run.files.filter(state=ImportFile.State.WAITING).order_by("pk"):
        data = _read(file)
        try:
            request = request_in(data)
        except NotALog as error:
            refuse(file, error)
            continue
        if request is not None:
            size += len(data)
            if found and size > MOST_BYTES:
                return found, False
            found[file] = request
    return found, True


def _read(file: ImportFile) -> bytes:
    """The bytes of a request, unpacked; none if it cannot be read, which its report says."""
    try:
        with objects.as_file(file.stored) as path:
            if not is_archive(path):
                return read_log(path)
            logs = [log.read() for log in logs_in(path)]
            return logs[0] if len(logs) == 1 else b""
    except (NotALog, OSError):
        return b""
