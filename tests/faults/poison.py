"""Tending that some content kills: what a job process does with a bug that nobody knows yet."""

import os
import time

from sessions.actions import jobs
from sessions.actions import tend as real
from sessions.actions.attempts import Running
from sessions.models import Session


def tend(running: Running) -> None:
    """As always, but for sessions that are called after how it ends."""
    name = Session.objects.get(pk=running.payload["session"]).external_id
    if name == "dies":
        os._exit(7)
    if name == "hangs":
        # Its limit must not be that of the others: on a busy machine it would end those, too.
        jobs.enqueue(running.team, "hang", {}, dedupe="hang")
        jobs.remove(running.job.id, running.token)
        return
    real.tend(running)


def hang(running: Running) -> None:
    """Never ends by itself."""
    while running:
        time.sleep(60)
