"""Traces: requests that wait are read as one, so that a trace whose spans come late is written
again once, and not for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.imports import import_file, run_import
from sessions.actions.imports.opened import is_archive, logs_in, read_log
from sessions.actions.imports.parts import RequestPart, are_waiting, exported_jobs
from sessions.actions.jobs import jobs, leases
from sessions.actions.jobs.attempts import Running
from sessions.actions.jobs.wakes import wake
from sessions.actions.record.prepare import Count
from sessions.importers.decoded import NotALog
from sessions.importers.traces.otlp import Encoding, as_one, encoding_of
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
    """Let a request begin that waits for this job; return whether there is one."""
    first = exported_jobs(running).filter(state=Job.State.QUEUED, result__isnull=True)
    job = first.order_by("created").first()
    if job is None:
        return False
    Job.objects.filter(pk=job.pk).update(wake_after=timezone.now())
    wake(job.pk, job.kind, 1)
    return True


def import_exported(
    running: Running, import_run: Import, count: Count, if_changed: IfChanged, part: RequestPart
) -> None:
    """Import the requests of a job, and those that wait for others by then. Raises PartEnded,
    jobs.Lost."""
    progress = partial(running.progress, unit="files")
    waiting = import_run.files.filter(state=ImportFile.State.WAITING)
    is_within = part.is_within([file.pk for file in waiting])
    if running.job.attempts > 1 and waiting.count() > 1:
        give_back(running, import_run)
        run_import(import_run, count, progress, if_changed, running.give_way)
        return
    while True:
        if running.job.attempts == 1:
            if not is_within:
                take_along(running, import_run)
            import_together(import_run, count, if_changed, part)
        run_import(import_run, count, progress, if_changed, running.give_way, part)
        is_within = False
        if running.job.attempts > 1 or part.is_long or not are_waiting(running):
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
    """Give each waiting request but the first a job of its own, because one of them failed."""
    waiting = import_run.files.filter(state=ImportFile.State.WAITING).order_by("pk")
    for file in waiting[1:]:
        with transaction.atomic():
            alone = Import.objects.create(team=running.team)
            payload = running.payload | {"import": str(alone.pk)}
            alone.job = jobs.enqueue(running.team, running.job.kind, payload)
            alone.save(update_fields=["job"])
            Job.objects.filter(pk=alone.job.pk).update(attempts=1)
            ImportFile.objects.filter(pk=file.pk).update(import_run=alone)


def import_together(
    import_run: Import, count: Count, if_changed: IfChanged, part: RequestPart
) -> None:
    """Import waiting requests of each encoding as one, with one report; others are left, and all of
    them if they are refused together."""
    found: dict[Encoding, dict[ImportFile, bytes]] = {}
    for encoding, file, data in _requests(import_run):
        found.setdefault(encoding, {})[file] = data
    for encoding, requests in found.items():
        if len(requests) > 1:
            log = as_one(encoding, requests.values())
            _import_as_one(import_run, list(requests), log, count, if_changed, part)


def _import_as_one(
    import_run: Import,
    files: Sequence[ImportFile],
    data: bytes,
    count: Count,
    if_changed: IfChanged,
    part: RequestPart,
) -> None:
    first, *others = files
    before = first.path
    first.path = f"{before} ({len(files)} requests)"
    import_file(import_run.team, first, lambda: data, count, if_changed, part)
    if first.state == ImportFile.State.REFUSED:
        waiting = ImportFile.State.WAITING
        ImportFile.objects.filter(pk=first.pk).update(path=before, state=waiting, problems=[])
        return
    objects.remove(objects.uploaded(file.stored for file in others))
    ImportFile.objects.filter(pk__in=[file.pk for file in others]).delete()


def _requests(import_run: Import) -> Iterator[tuple[Encoding, ImportFile, bytes]]:
    size = 0
    for file in import_run.files.filter(state=ImportFile.State.WAITING).order_by("pk"):
        data = _read(file)
        size += len(data)
        if size > MOST_BYTES:
            return
        encoding = encoding_of(data)
        if encoding is not None:
            yield encoding, file, data


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
