"""What workers run: ids in, one action out. The work itself is done in a process of its own."""

import contextlib
import logging
import os
import select
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

from celery import shared_task
from django.conf import settings

from sessions import live
from sessions.actions import jobs
from sessions.models import Job

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parent.parent
LOOK_SECONDS = 1.0  # how often cancelling and the deadline are looked for
NOT_OURS, LEAVING = "not ours", "leaving"

# Set when this process is to end: running jobs are given back within LOOK_SECONDS.
leaving = threading.Event()


@shared_task(name="sessions.run_job", ignore_result=True)
def run_job(job_id: str) -> None:
    """One attempt at a job, if nobody else makes one; always leaves it ended or queued again."""
    job = jobs.claim(uuid.UUID(job_id))
    if job is None or job.token is None:
        return
    reason = _Attempt(job).outcome()
    if reason == LEAVING:
        jobs.put_back(job.id, job.token)
    elif reason and reason != NOT_OURS:
        log.warning("job %s, attempt %s: %s", job.id, job.attempts, reason)
        jobs.give_up_attempt(job.id, job.token, reason)


@shared_task(name="sessions.sweep", ignore_result=True)
def sweep() -> None:
    """Wakes workers for jobs that nobody tends."""
    jobs.sweep()


class _Attempt:
    """Watches over one job process: tells the pages, keeps the lease, ends it when it must."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.version = job.version
        self.deadline = time.monotonic() + settings.JOB_SECONDS
        self.renewed = time.monotonic()

    def outcome(self) -> str:
        """Runs to the end. "" when the process wrote how it ended, NOT_OURS when somebody else
        has or ended the job, LEAVING, or a sentence that says what went wrong."""
        process = subprocess.Popen(  # noqa: S603 (our own command, two ids)
            [*settings.JOB_COMMAND, str(self.job.id), str(self.job.token)],
            stdin=subprocess.PIPE,  # closes when this process dies
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            # A group of its own, so that killing takes what it started along.
            start_new_session=True,
        )
        try:
            reason = self._watch(process)
        finally:
            _kill(process)
        if reason is not None:
            return reason
        self._tell()
        return "" if process.returncode == 0 else _said(process.returncode)

    def _watch(self, process: subprocess.Popen[bytes]) -> str | None:
        """None once the process has ended by itself."""
        assert process.stdout is not None
        outputs = [process.stdout.fileno()]
        while process.poll() is None:
            ready, _, _ = select.select(outputs, [], [], LOOK_SECONDS)
            # What it prints is only a nudge to look at the row; at the end of the file it ends.
            if ready and not os.read(ready[0], 65536):
                outputs = []
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK_SECONDS)
            if not self._tell():
                return NOT_OURS
            if leaving.is_set():
                return LEAVING
            if time.monotonic() > self.deadline:
                return f"It took longer than {settings.JOB_SECONDS:g} seconds and was stopped."
        return None

    def _tell(self) -> bool:
        """Hints at progress and keeps the lease; False when the job is no longer ours."""
        assert self.job.token is not None
        row = Job.objects.filter(id=self.job.id).values("version", "state", "token").first()
        if row is None:
            return False
        if row["version"] != self.version:
            self.version = row["version"]
            live.hint(f"job:{self.job.id}", self.version)
        if time.monotonic() - self.renewed > settings.JOB_LEASE_SECONDS / 4:
            self.renewed = time.monotonic()
            jobs.renew(self.job.id, self.job.token)
        return bool(row["state"] == Job.State.RUNNING and row["token"] == self.job.token)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends the process and everything it started; harmless when it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _said(code: int) -> str:
    if code < 0:
        return f"Its process was ended by {signal.Signals(-code).name}."
    return f"Its process ended with code {code}."
