"""The Celery application: in a thread of `serve`, or with Redis in processes of its own."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "contextlab.settings")

from celery import Celery
from celery.signals import task_postrun, task_prerun
from django.db import close_old_connections

# Celery's own Django fix-up puts the current directory on the path, where a user's folder
# called "sessions" would take our place. All it does for us besides stands below.
app = Celery("contextlab", fixups=[])
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.include = ["sessions.tasks"]
# The current application is per thread: without this, tasks sent from a view's thread would go
# to an application without a broker.
app.set_default()


@task_prerun.connect
@task_postrun.connect
def _fresh_connections(**_: Any) -> None:
    close_old_connections()
