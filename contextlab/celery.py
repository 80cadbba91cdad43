"""The Celery application: `celery -A contextlab worker`, or `contextlab worker`, with Redis.

A task only supervises a job's own process, so workers use threads. Each worker sweeps, so there is
nothing for beat to do.
"""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

from celery import Celery
from celery.signals import (
    import_modules,
    task_postrun,
    task_prerun,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.conf import settings
from django.db import close_old_connections
from kombu import Queue

# Celery's Django fix-up adds the current directory to the path, where a user's folder called
# "sessions" would shadow our package. The parts we need are below.
app = Celery("contextlab", fixups=[])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.include = ["sessions.tasks"]
app.conf.task_queues = [Queue(name) for name in settings.JOB_QUEUES]
# The current application is per thread: otherwise tasks sent from view threads would use an
# application without broker.
app.set_default()


@import_modules.connect
def _set_up(**_: Any) -> None:
    import django

    django.setup()


@worker_ready.connect
def _begin(**_: Any) -> None:
    from contextlab import __version__, watch
    from contextlab.processes.supervisor import Sweeper
    from sessions.actions.operations.seen import Heartbeat
    from sessions.models import SeenProcess

    # First: Celery logs what a receiver of its signals raises, and goes on.
    app.sweeper = Sweeper(Heartbeat(SeenProcess.Kind.WORKER, __version__))
    app.sweeper.start()
    watch.start("contextlab-worker")
    if settings.WORKER_METRICS:
        watch.listen(settings.WORKER_METRICS)


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
