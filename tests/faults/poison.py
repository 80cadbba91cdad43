"""Tending that some content kills: what a job process does with a bug that nobody knows yet."""

import os
import time

from sessions.actions import tend as real
from sessions.actions.attempts import Running
from sessions.models import Session


def tend(running: Running) -> None:
    """As always, but for sessions that are called after how it ends."""
    name = Session.objects.get(pk=running.payload["session"]).external_id
    if name == "dies":
        os._exit(7)
    while name == "hangs":
        time.sleep(60)
    real.tend(running)
