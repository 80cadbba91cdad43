"""The Celery application, for workers in processes of their own, with Redis."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

from celery import Celery
from celery.signals import task_postrun, task_prerun
from django.db import close_old_connections

# Celery's Django fix-up adds the current directory to the path, where a user's folder called
# "sessions" would shadow our package. The parts we need are below.
app = Celery("contextlab", fixups=[])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.include = ["sessions.tasks"]
# The current application is per thread: otherwise tasks sent from view threads would use an
# application without broker.
app.set_default()


@task_prerun.connect
@task_postrun.connect
def _fresh_connections(**_: Any) -> None:
    close_old_connections()
