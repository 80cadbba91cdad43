"""A worker at one job, and its process."""

import threading
from pathlib import Path

from django.db import connection

from sessions import tasks
from sessions.models import Job

State = Job.State


def run(job: Job) -> Job:
    """Run one attempt, like a worker."""
    tasks.supervise(job.id)
    job.refresh_from_db()
    return job


def is_gone(pid: int) -> bool:
    """Whether a process is dead, including zombies."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Worker(threading.Thread):
    """A worker's thread, busy with one job."""

    def __init__(self, job: Job) -> None:
        super().__init__(daemon=True)
        self.job = job
        self.start()

    def run(self) -> None:
        try:
            tasks.supervise(self.job.id)
        finally:
            connection.close()

    def ended(self) -> None:
        self.join(60)
        assert not self.is_alive()
