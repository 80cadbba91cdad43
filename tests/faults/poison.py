"""Upkeep that fails for certain sessions: simulates an unknown bug in a job process."""

import os
import time

from sessions.actions.jobs import jobs
from sessions.actions.jobs.attempts import Running
from sessions.actions.live import tend as real
from sessions.models import Session


def tend(running: Running) -> None:
    """Tend normally, except for sessions named after how the job ends."""
    name = Session.objects.get(pk=running.payload["session"]).external_id
    if name == "dies":
        os._exit(7)
    if name == "hangs":
        # Use a separate limit: on a busy machine a shared one would end other jobs, too.
        jobs.enqueue(running.team, "hang", {}, dedupe="hang")
        jobs.remove(running.job.id, running.token)
        return
    real.tend(running)


def hang(running: Running) -> None:
    """Never ends by itself."""
    while running:
        time.sleep(60)
