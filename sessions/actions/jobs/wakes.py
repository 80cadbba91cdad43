"""Wake-ups: notify a worker of a queued job; it takes the one whose turn it is. A lost one delays
the job by seconds, until the next sweep."""

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


# Set by `serve` without Redis: its threads take the ids from here. None ends one of them.
waiting: "queue.SimpleQueue[uuid.UUID | None] | None" = None


def queue_of(kind: str) -> str:
    """The queue of a kind of jobs."""
    return "live" if kind in settings.LIVE_JOBS else "batch"


def heard() -> bool:
    """Whether this process can notify a worker; otherwise the server's sweeper finds the job."""
    return bool(waiting is not None or live.parent or settings.REDIS_URL)


def wake(job_id: uuid.UUID, kind: str, after: float = 0) -> None:
    """Notify a worker of a job of some kind, `after` seconds from now; if that fails, the sweeper
    does it some seconds later."""
    if not heard():
        return
    if live.parent is not None:
        live.parent(f"wake {job_id} {kind} {after}")
    elif after:
        later = threading.Timer(after, wake, [job_id, kind])
        later.daemon = True
        later.start()
    elif waiting is not None:
        waiting.put(job_id)
    elif live.server_loop is not None:
        sender().put(job_id, kind)
    else:
        send(job_id, kind)


def send(job_id: uuid.UUID, kind: str) -> bool:
    """Send the wake-up through the broker. Returns False, leaving it to the sweeper, if the broker
    does not answer."""
    from celery import current_app  # slow to import, and rarely needed
    from kombu.exceptions import OperationalError

    try:
        current_app.send_task("sessions.run_job", args=[str(job_id)], queue=queue_of(kind))
    except (OperationalError, OSError) as error:
        log.warning("job %s is left to the sweeper: %s", job_id, type(error).__name__)
        queued = Job.objects.filter(id=job_id, state=Job.State.QUEUED)
        queued.update(wake_after=timezone.now())
        return False
    return True


class Sender:
    """A thread that sends wake-ups, because Redis may take seconds to time out and requests must
    not wait."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[tuple[uuid.UUID, str]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="wakes", daemon=True).start()

    def put(self, job_id: uuid.UUID, kind: str) -> None:
        """Queue a wake-up and return immediately."""
        self._waiting.put((job_id, kind))

    def _run(self) -> None:
        away_until = 0.0
        while True:
            job_id, kind = self._waiting.get()
            if time.monotonic() < away_until:
                continue  # left to the sweeper
            try:
                sent = send(job_id, kind)
            except Exception as error:  # noqa: BLE001 (any error: no other thread sends)
                log.warning("job %s is left to the sweeper: %s", job_id, type(error).__name__)
                sent = False
            finally:
                connection.close()
            if not sent:
                away_until = time.monotonic() + settings.SWEEP_SECONDS


@cache
def sender() -> Sender:
    """The sender of this process, started on first use."""
    return Sender()
