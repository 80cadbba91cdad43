"""Parts of an exporter's requests: files of their own, between which others get their turn."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from time import monotonic

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from sessions.actions.jobs.attempts import Running
from sessions.models import Import, ImportFile, Job
from sessions.models.record import objects

TURN = 10
"""Seconds after which a job makes room for others of its team that wait (our choice)."""

FIRST = "first_part"
"""Where a job's result has the number of the first file that is a part."""


class PartEnded(Exception):
    """The job goes on later, with the parts that wait."""


class ExporterTurn:
    """How long an exporter's job may go on. Called between two files."""

    def __init__(self, running: Running) -> None:
        self._running, self._begun = running, monotonic()

    @property
    def is_long(self) -> bool:
        """Whether the attempt has used a third of its time."""
        return self._took > settings.JOB_SECONDS / 3

    @property
    def _took(self) -> float:
        return monotonic() - self._begun

    def __call__(self) -> None:
        """Let others go first if it is their turn. Raises PartEnded, jobs.Lost."""
        if self.is_long or self._took > TURN and are_waiting(self._running):
            raise PartEnded
        self._running.give_way()


def exported_jobs(running: Running) -> QuerySet[Job]:
    """The other jobs of the team's exporters."""
    theirs = Job.objects.filter(team=running.team, kind=running.job.kind, payload__exported=True)
    return theirs.exclude(pk=running.job.pk)


def are_waiting(running: Running) -> bool:
    """Whether requests wait that no job has read in part."""
    return exported_jobs(running).filter(state=Job.State.QUEUED, result__isnull=True).exists()


def first_part(running: Running) -> int:
    """The number of the first file that is a part, 0 if there are none. Requests that the job has
    beside them have lower ones; they come later, as what they add may follow the parts."""
    return int((running.job.result or {}).get(FIRST, 0))


def keep_parts(
    running: Running, import_run: Import, requests: Sequence[ImportFile], parts: Sequence[bytes]
) -> None:
    """Store the parts in place of the requests. Raises jobs.Lost, ObjectsAway."""
    upload = f"{objects.UPLOADS}{uuid.uuid4().hex}"
    stored = {f"{upload}-{number}": part for number, part in enumerate(parts)}
    named = named_together(requests)
    rows = [
        ImportFile(
            import_run=import_run,
            path=f"{named}, part {number} of {len(parts)}",
            stored=place,
            size=len(part),
        )
        for number, (place, part) in enumerate(stored.items(), 1)
    ]
    try:
        objects.put(stored)
        with transaction.atomic():
            ImportFile.objects.bulk_create(rows)
            ImportFile.objects.filter(pk__in=[one.pk for one in requests]).delete()
            running.keep({FIRST: rows[0].pk})
    except BaseException:
        objects.remove(stored)
        raise
    objects.remove(objects.uploaded(one.stored for one in requests))


def named_together(requests: Sequence[ImportFile]) -> str:
    """The name of requests that are read as one."""
    first, *others = requests
    return f"{first.path} ({len(requests)} requests)" if others else first.path
