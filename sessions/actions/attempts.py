"""One attempt at a job, in a process made for jobs."""

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
from sessions.actions import jobs
from sessions.models import Job, Team

log = logging.getLogger(__name__)

SECONDS_BETWEEN_REPORTS = 0.25


class Outcome(NamedTuple):
    """What a job gives back: ids and numbers, and whether some of it could not be done."""

    result: dict[str, Any]
    partial: bool = False


class Refused(Exception):
    """Raised by a job that would end the same way at every attempt."""

    def __init__(self, title: str, detail: str, action: str) -> None:
        super().__init__(title)
        self.problem: jobs.Problem = {"title": title, "detail": detail, "action": action}


@dataclass
class Running:
    """A job as its function sees it: what to do, for whom, and where to say how far it is."""

    job: Job
    token: uuid.UUID
    _reported: float = field(default=0.0, repr=False)

    @property
    def team(self) -> Team:
        """Whose rows it may touch."""
        return self.job.team

    @property
    def payload(self) -> dict[str, Any]:
        """What `enqueue` was given."""
        return dict(self.job.payload)

    def progress(self, done: int, total: int | None = None, unit: str = "") -> None:
        """Says how far it is; may be called often. Raises jobs.Lost, which the function must let
        through, when the job was cancelled or taken over."""
        now = time.monotonic()
        if now - self._reported < SECONDS_BETWEEN_REPORTS and done != total:
            return
        self._reported = now
        jobs.progress(self.job.id, self.token, done, total, unit)
        if live.parent is not None:
            live.parent("progress")


Work = Callable[[Running], Outcome | None]
"""Does a job of one kind; None where it has ended its job by itself (see `jobs.remove`)."""


def attempt(job_id: uuid.UUID, token: uuid.UUID) -> bool:
    """Does the job's work and writes how it ended, or that it waits for another attempt.

    False after an error that nobody foresaw: what is left in memory is not to be trusted then.
    """
    job = Job.objects.select_related("team").filter(id=job_id, token=token).first()
    if job is None:
        return True
    try:
        if job.kind not in settings.JOB_KINDS:
            raise Refused(
                "This server does not know that kind of job",
                f"It was asked for {job.kind!r}, perhaps by a newer version.",
                "Update the workers, then try it again.",
            )
        work: Work = import_string(settings.JOB_KINDS[job.kind])
        outcome = work(Running(job, token))
        if outcome is not None:
            jobs.finish(job_id, token, outcome.result, outcome.partial)
    except jobs.Lost:
        return True
    except Refused as refused:
        jobs.refuse(job_id, token, refused.problem)
    except BaseException as error:
        # The text may quote what was read, so only its class is kept.
        log.error("job %s failed", job_id, exc_info=True)
        try:
            jobs.give_up_attempt(job_id, token, f"It failed with {type(error).__name__}.")
        except Error:
            sys.exit(1)  # then whoever watches over this process writes it, or the lease ends
        return False
    return True
