"""Wakes: tell a worker that a job waits. One that is lost costs seconds: the sweeper looks."""

import logging
import queue
import threading
import time
import uuid
from functools import cache

from django.conf import settings
from django.db import connection
from django.utils import timezone

from sessions import live
from sessions.models import Job

log = logging.getLogger(__name__)


def heard() -> bool:
    """Whether a worker hears this process; else the server's sweeper finds the row."""
    return bool(live.server_loop or live.parent or settings.REDIS_URL)


def wake(job_id: uuid.UUID) -> None:
    """Tells a worker at once; when that fails the sweeper does it some seconds later."""
    if not heard():
        return
    if live.parent is not None:
        live.parent(f"wake {job_id}")
    elif live.server_loop is not None and settings.REDIS_URL:
        sender().put(job_id)
    else:
        send(job_id)


def send(job_id: uuid.UUID) -> bool:
    """Sends it through the broker; False, and left to the sweeper, where that does not answer."""
    from celery import current_app  # slow to import, and most processes never wake anybody
    from kombu.exceptions import OperationalError

    try:
        current_app.send_task("sessions.run_job", args=[str(job_id)])
    except (OperationalError, OSError) as error:
        log.warning("job %s waits for the sweeper: %s", job_id, type(error).__name__)
        waiting = Job.objects.filter(id=job_id, state=Job.State.QUEUED)
        waiting.update(wake_after=timezone.now())
        return False
    return True


class Sender:
    """A thread that sends, as Redis may take seconds to not answer and no request waits for it."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[uuid.UUID] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="wakes", daemon=True).start()

    def put(self, job_id: uuid.UUID) -> None:
        """Returns at once."""
        self._waiting.put(job_id)

    def _run(self) -> None:
        away_until = 0.0
        while True:
            job_id = self._waiting.get()
            if time.monotonic() < away_until:
                continue  # the sweeper's
            try:
                sent = send(job_id)
            except Exception as error:  # noqa: BLE001 (whatever it is: nobody else would send)
                log.warning("job %s waits for the sweeper: %s", job_id, type(error).__name__)
                sent = False
            finally:
                connection.close()
            if not sent:
                away_until = time.monotonic() + settings.SWEEP_SECONDS


@cache
def sender() -> Sender:
    """The one of this process, which is a server; begun with its first wake."""
    return Sender()
