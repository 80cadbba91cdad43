"""One attempt at a job, in a job process."""

import logging
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from django.conf import settings
from django.db import Error
from django.utils.module_loading import import_string

from sessions import live
from sessions.actions.jobs import jobs, turns
from sessions.actions.jobs.log_lines import REQUEST, ids_of
from sessions.log_context import with_ids
from sessions.models import Job, Team
from sessions.models.erasure.kept import SessionErased
from sessions.models.web.statements import Statement, given_uuid

log = logging.getLogger(__name__)

_HELD = Statement(
    lambda: Job.objects.select_related("team").filter(
        id=given_uuid("job"), token=given_uuid("token")
    )
)

SECONDS_BETWEEN_REPORTS = 0.25
NOT_OURS = "not ours"


class JobOutcome(NamedTuple):
    """The result of a job (ids and numbers), and whether some of it could not be done."""

    result: dict[str, Any]
    partial: bool = False


class PermanentFailure(Exception):
    """Raised by a job that would fail on every attempt."""

    def __init__(self, title: str, detail: str, action: str) -> None:
        super().__init__(title)
        self.problem: jobs.JobProblem = {"title": title, "detail": detail, "action": action}


@dataclass
class Running:
    """A job as its function sees it: payload, team, and progress reporting."""

    job: Job
    token: uuid.UUID
    _reported: float = field(default=0.0, repr=False)
    _began: float = field(default_factory=time.monotonic, repr=False)

    @property
    def team(self) -> Team:
        """The team whose rows the job may access."""
        return self.job.team

    @property
    def payload(self) -> dict[str, Any]:
        """The payload passed to `enqueue`."""
        return {name: it for name, it in self.job.payload.items() if name != REQUEST}

    def progress(self, done: int, total: int | None = None, unit: str = "") -> None:
        """Report progress; cheap enough to call often. Raises jobs.Lost if the job was cancelled or
        claimed by another worker; let it propagate."""
        now = time.monotonic()
        if now - self._reported < SECONDS_BETWEEN_REPORTS and done != total:
            return
        self._reported = now
        jobs.progress(self.job.id, self.token, done, total, unit)
        _say("progress")

    def give_way(self) -> None:
        """End the attempt after a slice of work if others wait, by raising jobs.Lost; the job goes
        on in its turn. Call it where another attempt would go on."""
        if time.monotonic() - self._began < turns.SLICE_SECONDS or not turns.others_wait(self.team):
            return
        if jobs.put_back(self.job.id, self.token):
            jobs.wake(self.job.id, self.job.kind)
        raise jobs.Lost

    def keep(self, result: dict[str, Any] | None) -> None:
        """Store the result in the caller's transaction: an attempt after this one, which died
        before it ended the job, finds it in `job.result`. Raises jobs.Lost."""
        held = Job.objects.filter(id=self.job.id, token=self.token, state=Job.State.RUNNING)
        if not held.update(result=result):
            raise jobs.Lost
        self.job.result = result


Work = Callable[[Running], JobOutcome | None]
"""Performs jobs of one kind; returns None if it ended its job itself (see `jobs.remove`)."""


def attempt(job_id: uuid.UUID, token: uuid.UUID) -> bool:
    """Run one attempt of a job and record its result, or queue it for another attempt.

    Returns False after an unexpected error: the process should exit, because its memory may be
    corrupt.
    """
    job = _HELD.first(job=job_id, token=token)
    if job is None:
        return True
    with with_ids(**ids_of(job)):
        return _attempt(job, token)


def _attempt(job: Job, token: uuid.UUID) -> bool:
    job_id = job.id
    try:
        if job.kind not in settings.JOB_KINDS:
            raise PermanentFailure(
                "This server does not know this kind of job",
                f"The kind is {job.kind!r}; a newer version may have queued it.",
                "Update the workers, then retry the job.",
            )
        work: Work = import_string(settings.JOB_KINDS[job.kind])
        outcome = work(Running(job, token))
        if outcome is None:
            log.info("%s job ended: done", job.kind)
        else:
            jobs.finish(job_id, token, outcome.result, outcome.partial)
            _say(f"result {Job.State.PARTIAL if outcome.partial else Job.State.DONE}")
    except jobs.Lost:
        _say(f"result {NOT_OURS}")
    except SessionErased:  # meanwhile; the erasure cancels the jobs that it finds
        jobs.cancel(job)
        _say(f"result {Job.State.CANCELLED}")
    except PermanentFailure as refused:
        jobs.refuse(job_id, token, refused.problem)
        _say(f"result {Job.State.FAILED}")
    except BaseException as error:
        # The message may quote content, so only the class is stored.
        log.error("job %s failed", job_id, exc_info=True)
        _say(f"result {Job.State.FAILED}")
        try:
            jobs.give_up_attempt(job_id, token, f"It failed with {type(error).__name__}.")
        except Error:
            sys.exit(1)  # the supervisor records it, or the lease expires
        return False
    return True


def _say(line: str) -> None:
    if live.parent is not None:
        live.parent(line)
