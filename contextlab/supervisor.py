"""Companions of the web server in its process: a Celery worker and the sweeper."""

import fcntl
import logging
import threading
from pathlib import Path
from typing import IO, Any

from celery import Celery, shared_task
from celery.result import _set_task_join_will_block
from celery.worker import WorkController, state
from django.conf import settings
from django.db import connection
from django.utils import timezone

from sessions import tasks
from sessions.actions.budgets.reserved import release_expired
from sessions.actions.jobs import jobs
from sessions.actions.web.once import forget_answers

log = logging.getLogger(__name__)


JOIN_SECONDS = 3
"""How long to wait for each companion; together less than `door.stopping.STOP_SECONDS`."""


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


@shared_task(name="contextlab.wake", ignore_result=True)
def wake() -> None:
    """Does nothing."""


class _Controller(WorkController):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.ready = threading.Event()
        super().__init__(*args, **kwargs)

    def on_consumer_ready(self, consumer: Any) -> None:  # noqa: ARG002
        self.ready.set()


class EmbeddedWorker:
    """A Celery worker in a thread; its tasks only supervise job processes."""

    def __init__(self, app: Celery) -> None:
        app.finalize()
        app.set_default()
        # WorkController, because Celery's own Worker installs signal handlers, which only the main
        # thread may do. Threads, because the solo pool closes the database's descriptors.
        self.worker = _Controller(
            app=app,
            pool="threads",
            concurrency=settings.JOB_THREADS,
            hostname="embedded@localhost",
            loglevel="WARNING",
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
            send_events=False,
        )
        _set_task_join_will_block(False)
        self.thread = threading.Thread(target=self.worker.start, name="celery", daemon=True)

    def start(self) -> None:
        """Start, and return once it accepts tasks. Raises RuntimeError if it does not."""
        state.should_stop = state.should_terminate = None
        self.thread.start()
        if not self.worker.ready.wait(10):
            raise RuntimeError("the embedded Celery worker did not start")

    def stop(self) -> None:
        """Return running jobs to the queue and stop the worker."""
        tasks.leaving.set()
        state.should_stop = 0
        # Celery waits up to two seconds for a message, plus one more iteration.
        wake.delay()
        wake.delay()
        self.thread.join(JOIN_SECONDS)


class Sweeper:
    """A thread that wakes workers for stuck jobs every SWEEP_SECONDS, and ends idle job
    processes."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
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
            try:
                jobs.sweep()
                forget_answers()
                release_expired(None, timezone.now())
            except Exception as error:  # noqa: BLE001 (any error: nothing else sweeps)
                log.warning("sweep failed: %s", type(error).__name__)
            finally:
                connection.close()
            if self.stopping.wait(settings.SWEEP_SECONDS):
                tasks.end_idle(0)
                return
