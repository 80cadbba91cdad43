"""Parts of a large request: an attempt that ends, or gives others their turn, is gone on from."""

from __future__ import annotations

from time import monotonic

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from sessions.actions.jobs.attempts import Running
from sessions.models import ImportFile, Job

KEPT_APART, TURN = 5, 60
"""Seconds between notes of how far a job is, and after which it makes room for others that wait
(our choice: reading a request again takes a few)."""


class PartEnded(Exception):
    """The job goes on later, where it is now."""


class RequestPart:
    """How far an exporter's job is with the groups of a file, which stay in the same order."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._begun = self._kept = monotonic()
        self._place = dict(running.job.result or {})

    @property
    def is_long(self) -> bool:
        """Whether the attempt has used a third of its time."""
        return monotonic() - self._begun > settings.JOB_SECONDS / 3

    def is_within(self, files: list[int]) -> bool:
        """Whether an earlier attempt ended within one of these files."""
        return self._place.get("file") in files

    def begin(self, file: ImportFile) -> tuple[int, bool]:
        """How many groups of a file are done, and whether that made sessions."""
        if self._place.get("file") != file.pk:
            self._place = {"file": file.pk, "groups": 0, "created": False}
        return self._place["groups"], self._place["created"]

    def end_group(self, file: ImportFile, done: int, total: int, *, created: bool) -> None:
        """Note that a group is done. Raises PartEnded, jobs.Lost."""
        self._running.progress(done, total, "traces")
        now = monotonic()
        if now - self._kept < KEPT_APART or done == total:
            return
        self._kept = now
        self._place = {"file": file.pk, "groups": done, "created": created}
        with transaction.atomic():
            file.save(update_fields=["found", "new_messages"])
            self._running.keep(self._place)
        if self.is_long or now - self._begun > TURN and are_waiting(self._running):
            raise PartEnded
        if now - self._begun > TURN:
            self._running.give_way()


def exported_jobs(running: Running) -> QuerySet[Job]:
    """The other jobs of the team's exporters."""
    theirs = Job.objects.filter(team=running.team, kind=running.job.kind, payload__exported=True)
    return theirs.exclude(pk=running.job.pk)


def are_waiting(running: Running) -> bool:
    """Whether requests wait that no job has read in part."""
    return exported_jobs(running).filter(state=Job.State.QUEUED, result__isnull=True).exists()
