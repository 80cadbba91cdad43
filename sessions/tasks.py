"""Worker tasks: claim a job, and run it in a separate process."""

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
from sessions.actions.jobs import jobs
from sessions.models import Job

log = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parent.parent
LOOK_SECONDS = 1.0  # how often to check for cancellation and the deadline
WORD_SECONDS = 1.0  # time a process has to confirm after its job's row was finished
IDLE_SECONDS = 60.0  # how long a process waits for its next job
NOT_OURS, LEAVING = "not ours", "leaving"

# Set when this process is about to exit: running jobs are returned within LOOK_SECONDS.
leaving = threading.Event()


@shared_task(name="sessions.run_job", ignore_result=True)
def run_job(job_id: str) -> None:
    """Supervise a job in a Celery worker."""
    supervise(uuid.UUID(job_id))


def supervise(job_id: uuid.UUID) -> None:
    """Run one attempt of a job, unless another worker has it; leaves it finished or queued."""
    job = jobs.claim(job_id)
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
    """Wake workers for stuck jobs."""
    jobs.sweep()


def end_idle(after: float = IDLE_SECONDS) -> None:
    """End processes that have been idle for that many seconds."""
    for process in list(_waiting):
        if time.monotonic() - process.since >= after:
            # Another thread may have taken it: the one that removes it from the list owns it.
            with contextlib.suppress(ValueError):
                _waiting.remove(process)
                process.end()


class _Process:
    """A job process (contextlab/job.py) and its output."""

    def __init__(self) -> None:
        self.command, self.environment = _start()
        self.fresh = True
        self.since = time.monotonic()
        self._rest = b""
        self._popen = subprocess.Popen(  # noqa: S603 (our own command)
            self.command,
            stdin=subprocess.PIPE,  # closes when this process dies
            stdout=subprocess.PIPE,
            env=self.environment,
            # Its own process group, so that killing it also kills its children.
            start_new_session=True,
        )

    def fits(self) -> bool:
        """Whether a new process would be started with the same command and environment."""
        return (self.command, self.environment) == _start()

    def give(self, job: Job) -> None:
        """Assign a job; a dead process is detected by its missing output."""
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(self._popen.stdin.fileno(), f"{job.id} {job.token}\n".encode())

    def said(self, seconds: float) -> list[str] | None:
        """Lines of output within that many seconds; None once it has ended."""
        assert self._popen.stdout is not None
        output = self._popen.stdout.fileno()
        ready, _, _ = select.select([output], [], [], seconds)
        if not ready:
            return None if self._popen.poll() is not None else []
        data = os.read(output, 65536)
        if not data:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(seconds)
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode() for line in lines]

    def end(self) -> int:
        """Kill the process and its children; return its exit code. Safe if it has already ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        code = self._popen.wait()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()
        return code


# Newest last and reused first: with little load one process does everything, and the others exit.
_waiting: list[_Process] = []


def _start() -> tuple[list[str], dict[str, str]]:
    return settings.JOB_COMMAND, {**os.environ, "PYTHONPATH": str(ROOT)}


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
        self.deadline = time.monotonic() + self.seconds
        self.renewed = time.monotonic()
        self.took = False
        self.last = ""

    def outcome(self) -> str:
        """Run the attempt. Returns "" if the process recorded the result, NOT_OURS if another
        worker has or ended the job, LEAVING, or a sentence with the error."""
        process = _take()
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
        self._report()
        if not self.last and code < 0 and leaving.wait(WORD_SECONDS):
            return LEAVING  # whoever ended this process ends ours too, which is not the job's fault
        return "" if self.last else _said(code)

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
            if not self._report():
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
            case ["hint", topic, version]:
                live.hint(topic, int(version))
            case ["wake", job_id, after]:
                jobs.wake(uuid.UUID(job_id), float(after))
            case _:
                pass  # "progress": the row is checked after every line

    def _report(self) -> bool:
        """Send a progress hint and renew the lease. Returns False if the job is no longer ours."""
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


def _said(code: int) -> str:
    if code < 0:
        return f"Its process was killed by {signal.Signals(-code).name}."
    return f"Its process exited with code {code}."
