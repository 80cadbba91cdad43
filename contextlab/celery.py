"""The Celery application: `celery -A contextlab worker`, or `contextlab worker`, with Redis.

A task only supervises a job's own process, so workers use threads. Each worker sweeps, so there is
nothing for beat to do.
"""

import os
import sys
import uuid
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

from celery import Celery
from celery.exceptions import WorkerShutdown
from celery.signals import (
    import_modules,
    task_postrun,
    task_prerun,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings
from django.core.management import CommandError
from django.db import close_old_connections
from kombu import Queue

# Celery's Django fix-up adds the current directory to the path, where a user's folder called
# "sessions" would shadow our package. The parts we need are below.
app = Celery("contextlab", fixups=[])
app.ended_with = 0  # the exit code of `contextlab worker`: Celery keeps its own
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(name) for name in settings.JOB_QUEUES]
# The current application is per thread: otherwise tasks sent from view threads would use an
# application without broker.
app.set_default()


@app.task(name="sessions.run_job", ignore_result=True, bind=True)
def run_job(self: Any, job_id: str) -> None:
    """Supervise a job of the queue that the message came through."""
    from sessions import tasks  # Django must be set up first

    tasks.supervise(uuid.UUID(job_id), self.request.delivery_info["routing_key"])


@import_modules.connect
def _set_up(**_: Any) -> None:
    import django

    django.setup()


@worker_ready.connect
def _begin(**_: Any) -> None:
    from contextlab import watch
    from contextlab.processes.supervisor import Sweeper
    from contextlab.version import version
    from sessions import tasks
    from sessions.actions.operations.seen import Heartbeat
    from sessions.models import SeenProcess

    app.sweeper = Sweeper(Heartbeat(SeenProcess.Kind.WORKER, version()))
    app.sweeper.start()
    try:
        watch.start("contextlab-worker")
        if settings.WORKER_METRICS:
            watch.listen(settings.WORKER_METRICS)
    except CommandError as error:
        # Celery logs other errors of its signals' receivers, and goes on.
        tasks.leaving.set()
        app.sweeper.stop()
        sys.stderr.write(f"{error}\n")
        app.ended_with = error.returncode
        raise WorkerShutdown(error.returncode) from None


@worker_shutting_down.connect
def _leave(**_: Any) -> None:
    from sessions import tasks

    tasks.leaving.set()


@worker_shutdown.connect
def _end(**_: Any) -> None:
    app.sweeper.stop()


@task_prerun.connect
@task_postrun.connect
def _fresh_connections(**_: Any) -> None:
    close_old_connections()
