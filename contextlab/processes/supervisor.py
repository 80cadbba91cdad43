"""Companions of the web server in its process: supervisors of job processes, and the sweeper."""

import fcntl
import logging
import queue
import threading
import time
import uuid
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.utils import timezone

from contextlab.processes import memory
from contextlab.version import version
from sessions import tasks
from sessions.actions.assessments import assess
from sessions.actions.budgets.reserved import release_expired
from sessions.actions.erasure import archiving, retention
from sessions.actions.ingestion import arrivals
from sessions.actions.jobs import jobs, wakes
from sessions.actions.operations import objects, quotas
from sessions.actions.operations.seen import Heartbeat
from sessions.actions.operations.stored import count_new
from sessions.actions.web.once import forget_answers
from sessions.models import SeenProcess
from sessions.models.record.objects import remove_forgotten

log = logging.getLogger(__name__)


JOIN_SECONDS = 3
"""How long to wait for each companion; together less than `door.stopping.STOP_SECONDS`."""


CLEAN_SECONDS = 600
"""How often counts past their time are deleted."""

COUNT_SECONDS = 60
"""How often it is counted what teams store, and objects without rows are removed."""

REMOVED_AT_ONCE = 1000
"""Objects that are removed after one count."""

OBJECTS_SECONDS = 24 * 3600
"""How often it is looked for objects that got no row."""


class AlreadyServed(Exception):
    """Another server uses the same data directory."""


def only_server(folder: Path) -> IO[str]:
    """Lock the data directory until the returned file is closed or the process dies. Raises
    AlreadyServed."""
    file = (folder / "serve.lock").open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise AlreadyServed(
            f"another contextlab server is using {folder}; stop it, or set "
            "CONTEXTLAB_DATA_DIR to another directory"
        ) from None
    return file


class JobThreads:
    """Threads that supervise job processes, where no Celery worker does."""

    def __init__(self) -> None:
        self.waiting: queue.SimpleQueue[uuid.UUID | None] = queue.SimpleQueue()
        self.threads = [
            threading.Thread(target=self._run, name="job", daemon=True)
            for _ in range(settings.JOB_THREADS)
        ]

    def start(self) -> None:
        """Start; from now on jobs are run as soon as they are asked for."""
        wakes.waiting = self.waiting
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Return running jobs to the queue, and stop."""
        tasks.leaving.set()
        for _ in self.threads:
            self.waiting.put(None)
        until = time.monotonic() + JOIN_SECONDS
        for thread in self.threads:
            thread.join(max(until - time.monotonic(), 0))

    def _run(self) -> None:
        while (job_id := self.waiting.get()) is not None and not tasks.leaving.is_set():
            try:
                tasks.supervise(job_id)
            except Exception as error:  # noqa: BLE001 (any error: the sweeper tries again)
                log.warning("job %s is left to the sweeper: %s", job_id, type(error).__name__)
            finally:
                close_old_connections()
        connection.close()


class ArrivalsWriter:
    """A thread that writes the counts of what agents send, in every server."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, name="arrivals", daemon=True)

    def start(self) -> None:
        """Write every ARRIVAL_SECONDS."""
        self.thread.start()

    def stop(self) -> None:
        """Write once more, and stop."""
        self.stopping.set()
        self.thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        cleaned = time.monotonic()
        heartbeat = Heartbeat(SeenProcess.Kind.WEB, version())
        while True:
            stopped = self.stopping.wait(settings.ARRIVAL_SECONDS)
            try:
                heartbeat.end() if stopped else heartbeat.say()
                arrivals.flush()
                quotas.flush()
                if time.monotonic() - cleaned > CLEAN_SECONDS:
                    cleaned = time.monotonic()
                    arrivals.forget_old()
            except Exception as error:  # noqa: BLE001 (any error: nothing else writes)
                log.warning("arrivals were not counted: %s", error)
            finally:
                close_old_connections()
            if stopped:
                connection.close()
                return


class Sweeper:
    """A thread that every SWEEP_SECONDS wakes workers for stuck jobs, ends idle job processes, and
    returns freed memory."""

    def __init__(self, heartbeat: Heartbeat | None = None) -> None:
        self.stopping = threading.Event()
        self.heartbeat, self._counted = heartbeat, 0.0
        self._swept_objects: float | None = None
        self.thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        """Sweep now, and then periodically."""
        self.thread.start()

    def stop(self) -> None:
        """Stop the thread and wait for it."""
        self.stopping.set()
        self.thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        while True:
            tasks.end_idle()
            memory.give_back()
            try:
                jobs.sweep()
                forget_answers()
                release_expired(None, timezone.now())
                retention.sweep(timezone.now())
                archiving.sweep(timezone.now())
                self._count()
            except Exception as error:  # noqa: BLE001 (any error: nothing else sweeps)
                log.warning("sweep failed: %s", error)
            finally:
                close_old_connections()
            if self.stopping.wait(settings.SWEEP_SECONDS):
                self._leave()
                return

    def _count(self) -> None:
        if self.heartbeat is not None:
            self.heartbeat.say()
        if time.monotonic() - self._counted >= COUNT_SECONDS:
            self._counted = time.monotonic()
            count_new()
            assess.ask_resting(timezone.now(), timedelta(seconds=3 * COUNT_SECONDS))
            remove_forgotten(REMOVED_AT_ONCE)
            if time.monotonic() - (self._swept_objects or -OBJECTS_SECONDS) >= OBJECTS_SECONDS:
                self._swept_objects = time.monotonic()
                objects.sweep(timezone.now())

    def _leave(self) -> None:
        with suppress(DatabaseError):
            if self.heartbeat is not None:
                self.heartbeat.end()
        connection.close()
        tasks.end_idle(0)
