"""Worker tasks: claim a job, and run it in a separate process."""

import contextlib
import logging
import os
import select
import signal
import threading
import time
import uuid

from django.conf import settings

from sessions import live, metrics, tracing
from sessions.actions.jobs import jobs, turns
from sessions.actions.jobs.attempts import NOT_OURS
from sessions.actions.jobs.log_lines import ids_of
from sessions.actions.web import forks
from sessions.log_context import with_ids
from sessions.models import Job

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0  # how often to check for cancellation and the deadline
WORD_SECONDS = 1.0  # time a process has to confirm after its job's row was finished
IDLE_SECONDS = 60.0  # how long a process waits for its next job
SPARE_SECONDS = 10.0  # how long all but the last used one wait: starting one is cheap
LEAVING = "leaving"

# Set when this process is about to exit: running jobs are returned within LOOK_SECONDS.
leaving = threading.Event()


def supervise(job_id: uuid.UUID, queue: str = "") -> None:
    """Run one attempt of the job whose turn it is when this one wakes the worker (see `turns`);
    leaves it finished or queued."""
    job = turns.take(job_id, queue)
    if job is None or job.token is None:
        return
    began = time.monotonic()
    with tracing.span(f"job {job.kind}", job=str(job.id)) as span:
        attempt = _Attempt(job)
        reason = attempt.outcome()
        span.set_attribute("result", reason or attempt.result)
    result = reason if reason in (NOT_OURS, LEAVING) else Job.State.FAILED
    metrics.JOBS.labels(job.kind, result if reason else attempt.result).inc()
    metrics.JOB_SECONDS.labels(job.kind).observe(time.monotonic() - began)
    if reason == LEAVING:
        jobs.put_back(job.id, job.token)
    elif reason and reason != NOT_OURS:
        with with_ids(**ids_of(job)):
            log.warning("%s job, attempt %s: %s", job.kind, job.attempts, reason)
            jobs.give_up_attempt(job.id, job.token, reason)


def end_idle(after: float = IDLE_SECONDS) -> None:
    """End processes that have been idle for that many seconds, and spare ones sooner."""
    for process in list(_waiting):
        limit = after if process in _waiting[-1:] else min(after, SPARE_SECONDS)
        if time.monotonic() - process.since >= limit:
            # Another thread may have taken it: the one that removes it from the list owns it.
            with contextlib.suppress(ValueError):
                _waiting.remove(process)
                process.end()


class _Process:
    """A job process (contextlab/processes/job.py) and its output."""

    def __init__(self) -> None:
        self.fresh = True
        self.since = time.monotonic()
        self._rest = b""
        self._forked = forks.Forked(settings.JOB_PROCESS)

    def fits(self) -> bool:
        """Whether a new process would be started in the same environment."""
        return forks.fits(self._forked)

    def give(self, job: Job) -> None:
        """Assign a job; a dead process is detected by its missing output."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._forked.input, f"{job.id} {job.token}\n".encode())

    def said(self, seconds: float) -> list[str] | None:
        """Lines of output within that many seconds; None once it has ended."""
        output = select.poll()  # see `forks.serve`
        output.register(self._forked.output, select.POLLIN)
        if not output.poll(seconds * 1000):
            return []
        data = os.read(self._forked.output, 65536)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode() for line in lines]

    def end(self) -> int | None:
        """Kill the process and its children; return its exit code, None if the server of all
        job processes has died. Safe if it has already ended."""
        return self._forked.end()


# Newest last and reused first: with little load one process does everything, and the others exit.
_waiting: list[_Process] = []


def _take() -> _Process:
    while True:
        try:
            process = _waiting.pop()
        except IndexError:
            return _Process()
        if process.fits():
            return process
        process.end()


class _Attempt:
    """Supervises one attempt: updates pages, renews the lease, and ends its process if
    necessary."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.version = job.version
        self.seconds = settings.JOB_SECONDS_OF.get(job.kind, settings.JOB_SECONDS)
        self.renewed = self.looked = time.monotonic()
        self.took = False
        self.last = ""
        self.result: str = Job.State.DONE

    def outcome(self) -> str:
        """Run the attempt. Returns "" if the process recorded the result, NOT_OURS if another
        worker has or ended the job, LEAVING, or a sentence with the error."""
        process = _take()
        self.deadline = time.monotonic() + self.seconds  # starting it is not the job's fault
        process.give(self.job)
        reason: str | None = LEAVING
        try:
            reason = self._watch(process)
        finally:
            keep = reason is None and self.last == "over" and not leaving.is_set()
            code = 0 if keep else process.end()
        if keep:
            process.fresh, process.since = False, time.monotonic()
            _waiting.append(process)
        if reason is not None:
            return reason
        if not self.last and not self.took and not process.fresh:
            return self.outcome()  # the process died while idle, which is not this job's fault
        if self.last:
            return ""
        if code is None:
            return NOT_OURS  # nothing is known of the job: its lease will expire
        if code < 0 and leaving.wait(WORD_SECONDS):
            return LEAVING  # what ended this process ends ours too, which is not the job's fault
        return _said(code)

    def _watch(self, process: _Process) -> str | None:
        """Returns None once the attempt is over, or its process has ended."""
        while not self.last:
            lines = process.said(LOOK_SECONDS)
            if lines is None:
                return None
            for line in lines:
                self._hear(line)
            if self.last:
                return None
            # Most jobs end sooner, without being looked at.
            if time.monotonic() - self.looked >= LOOK_SECONDS and not self._report():
                return None if self._over(process) else NOT_OURS
            if leaving.is_set():
                return LEAVING
            if time.monotonic() > self.deadline:
                return f"It took longer than {self.seconds:g} seconds and was stopped."
        return None

    def _over(self, process: _Process) -> bool:
        """Whether the process itself ended the job, which it confirms immediately."""
        if Job.objects.filter(id=self.job.id, state=Job.State.CANCELLED).exists():
            return False
        until = time.monotonic() + WORD_SECONDS
        while not self.last and (left := until - time.monotonic()) > 0:
            lines = process.said(left)
            if lines is None:
                break
            for line in lines:
                self._hear(line)
        return bool(self.last)

    def _hear(self, line: str) -> None:
        match line.split():
            case ["took"]:
                self.took = True
            case ["over" | "last" as said]:
                self.last = said
            case ["result", *words]:
                self.result = " ".join(words)
            case ["hint", topic, version]:
                live.hint(topic, int(version))
            case ["wake", job_id, kind, after]:
                jobs.wake(uuid.UUID(job_id), kind, float(after))
            case _:
                self.looked = 0.0  # "progress": the row is checked at once

    def _report(self) -> bool:
        """Send a progress hint and renew the lease. Returns False if the job is no longer ours."""
        assert self.job.token is not None
        self.looked = time.monotonic()
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


def _said(code: int) -> str:
    if code < 0:
        return f"Its process was killed by {signal.Signals(-code).name}."
    return f"Its process exited with code {code}."
