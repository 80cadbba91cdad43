"""Traces: requests that wait are read as one, so that a trace whose spans come late is written
again once, and not for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    is_in_parts = running.job.result is not None
    if not is_first:
        give_back(running, import_run, is_in_parts=is_in_parts)
    while True:
        if is_first and not is_in_parts:
            take_along(running, import_run)
        if not is_in_parts:
            import_together(running, import_run, count, if_changed)
        run_import(import_run, count, partial(running.progress, unit="files"), if_changed, turn)
        if not is_first or turn.is_long or not are_waiting(running):
            return
        is_in_parts = False


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


def give_back(running: Running, import_run: Import, *, is_in_parts: bool) -> None:
    """Leave the first file that waits, because one of them failed. Of parts that was the first, and
    one other job has the rest; of requests it may be any, and each gets a job of its own."""
    waiting = list(import_run.files.filter(state=ImportFile.State.WAITING).order_by("pk"))
    if is_in_parts and waiting[1:]:
        _give_job(running, waiting[1:], attempts=0, result=running.job.result)
        return
    for file in waiting[1:]:
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
) -> None:
    """Import waiting requests as one, with one report, or store them in parts if they have many
    calls; files that are no requests are left. Raises jobs.Lost."""
    requests = dict(_requests(import_run))
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


def _requests(import_run: Import) -> Iterator[tuple[ImportFile, dict[str, Json]]]:
    """The requests among the first files that wait, in their JSON form; one with more values than
    any exporter's is refused."""
    size = 0
    for file in import_run.files.filter(state=ImportFile.State.WAITING).order_by("pk"):
        data = _read(file)
        size += len(data)
        if size > MOST_BYTES and size > len(data):
            return
        try:
            request = request_in(data)
        except NotALog as error:
            refuse(file, error)
            continue
        if request is not None:
            yield file, request


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
