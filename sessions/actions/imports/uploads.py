"""Uploads: files received over the network, kept until a job has read them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Protocol

from django.db import transaction

from sessions.actions.accounts import audit
from sessions.actions.imports import together
from sessions.actions.imports.changed import IfChanged
from sessions.actions.imports.imports import begin_import, report, run_import
from sessions.actions.imports.parts import PartEnded
from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import JobOutcome, PermanentFailure, Running
from sessions.actions.jobs.jobs import enqueue
from sessions.models import Import, ImportFile, Job, Team
from sessions.models.record import objects

KIND = "import"
FILES_AT_ONCE = 100
"""Maximum files per upload: Django's limit on form parts."""


MOST_WAITING = 500
"""Uploads of a team that may wait for their job: an exporter of traces sends one every few
seconds."""


PAUSE_SECONDS = 15
"""Seconds for which a request of an exporter makes room for others: more than those in which a job
that waits counts as one that may begin."""


class Uploaded(Protocol):
    """A file of a request: name and bytes."""

    name: str | None

    def chunks(self) -> Iterable[bytes]:
        """The bytes in chunks."""


class BodyFile:
    """A request body as an uploaded file."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name: str | None = name
        self._data = data

    def chunks(self) -> Iterable[bytes]:
        """The bytes, in one piece."""
        yield self._data


def has_room(team: Team) -> bool:
    """Whether a team may upload more before its jobs have read what waits."""
    waiting = Job.objects.filter(team=team, kind=KIND, state=Job.State.QUEUED)
    return waiting[:MOST_WAITING].count() < MOST_WAITING


def begin_upload(
    team: Team,
    files: Sequence[Uploaded],
    actor: audit.Actor | None = audit.COMMAND,
    if_changed: IfChanged = IfChanged.KEEP,
) -> Import:
    """Store the files and queue their import; on return they survive a crash.

    Names are data only: the objects are numbered per upload. Without an actor it is an exporter's,
    which sends every few seconds: the audit log has no entry, and what brought nothing new leaves
    no rows. Raises ObjectsAway.
    """
    upload = f"{objects.UPLOADS}{uuid.uuid4().hex}"
    places = [f"{upload}-{number}" for number in range(len(files))]
    try:
        kept = [
            (_name(file.name), place, objects.put_chunks(place, file.chunks()))
            for file, place in zip(files, places, strict=True)
        ]
        with transaction.atomic():
            import_run = begin_import(team, kept, job=None)
            named, choice = str(import_run.pk), str(if_changed)
            payload: dict[str, Any] = {"import": named, "if_changed": choice}
            payload |= {"exported": True} if actor is None else {}
            import_run.job = enqueue(team, KIND, payload)
            import_run.save(update_fields=["job"])
            if actor is not None:
                audit.note(team, actor, "import.asked", named, files=len(kept), if_changed=choice)
        return import_run
    except BaseException:
        objects.remove(places)
        raise


def _name(name: str | None) -> str:
    """The sender's file name, without characters that PostgreSQL rejects."""
    text = (name or "").replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
    return text or "unnamed file"


def run(running: Running) -> JobOutcome | None:
    """Run the job: import the uploaded files, then delete them."""
    from compaction.tokens import (
        counted,
    )  # pages never count tokens, so only jobs load the vocabulary

    import_run = Import.objects.filter(team=running.team, pk=running.payload["import"]).first()
    if import_run is None:
        raise PermanentFailure(
            "The upload no longer exists", "Its record was deleted.", "Upload the files again."
        )
    if_changed = IfChanged(running.payload.get("if_changed", IfChanged.KEEP))
    if not running.payload.get("exported"):
        progress = partial(running.progress, unit="files")
        run_import(import_run, counted, progress, if_changed, running.give_way)
        return _end(import_run)
    if together.is_another_running(running):
        jobs.put_back(running.job.pk, running.token, after=PAUSE_SECONDS)
        if not together.is_another_running(running):  # it ended meanwhile
            together.wake_waiting(running)
        return None
    try:
        together.import_exported(running, import_run, counted, if_changed)
    except PartEnded:
        pause = 2 * PAUSE_SECONDS if together.wake_waiting(running) else 0
        jobs.put_back(running.job.pk, running.token, after=pause)
        return None
    outcome = _end_exported(running, import_run)
    together.wake_waiting(running)  # one that came as the last request was read
    return outcome


def _end_exported(running: Running, import_run: Import) -> JobOutcome | None:
    """Without a row if nothing was new."""
    states = set(import_run.files.values_list("state", flat=True))
    if states <= {ImportFile.State.KNOWN, ImportFile.State.EMPTY}:
        _let_go(import_run.files.all())
        with transaction.atomic():
            import_run.delete()
            jobs.remove(running.job.pk, running.token)
        return None
    if states <= {ImportFile.State.REFUSED}:
        _forget_refused(running.team)
    return _end(import_run)


def _forget_refused(team: Team) -> None:
    """Delete what exporters' uploads left that were refused: a later one tells the same."""
    refused = Job.objects.filter(
        team=team, kind=KIND, state=Job.State.FAILED, payload__exported=True
    )
    Import.objects.filter(team=team, job__in=refused).delete()
    refused.delete()


def _end(import_run: Import) -> JobOutcome:
    files = list(import_run.files.all())
    _let_go(files)
    refused = sum(file.state == ImportFile.State.REFUSED for file in files)
    if refused == len(files):
        raise PermanentFailure(
            "None of the files could be imported",
            "None of them has a known format.",
            "Open the import report for the reason per file.",
        )
    totals = {name: value for name, value in report(import_run).items() if name != "files"}
    totals |= {"files": len(files), "refused": refused, "import": str(import_run.pk)}
    return JobOutcome(totals, partial=refused > 0)


def _let_go(files: Iterable[ImportFile]) -> None:
    """Delete the uploaded files: their content is stored or was refused."""
    objects.remove(objects.uploaded(file.stored for file in files))
