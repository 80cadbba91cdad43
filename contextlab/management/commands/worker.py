"""`contextlab worker`: run jobs for one or more servers, with Redis."""

import os
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

SECONDS_BEFORE_ANOTHER = 2


class Command(BaseCommand):
    help = "Run jobs for servers that share REDIS_URL and DATABASE_URL."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the concurrency."""
        parser.add_argument(
            "--concurrency", type=int, default=settings.JOB_THREADS, help="jobs at once"
        )

    def handle(self, *args: Any, concurrency: int, **options: Any) -> None:
        """Run until SIGTERM or SIGINT; running jobs are returned to the queue."""
        if not settings.REDIS_URL:
            raise CommandError(
                "REDIS_URL is not set. Without Redis, `contextlab serve` runs the jobs itself."
            )
        from celery.signals import worker_shutting_down

        from contextlab import watch
        from contextlab.celery import app
        from contextlab.processes.supervisor import Sweeper
        from sessions import tasks

        watch.start("contextlab-worker")
        if settings.WORKER_METRICS:
            watch.listen(settings.WORKER_METRICS)
        worker_shutting_down.connect(lambda **_: tasks.leaving.set(), weak=False)
        sweeper = Sweeper()
        sweeper.start()
        try:
            # Threads, because a task only supervises its own process.
            app.worker_main(
                ["worker", "--pool=threads", f"--concurrency={concurrency}", "--loglevel=WARNING"]
                + ["--without-mingle", "--without-gossip"]
            )
        finally:
            sweeper.stop()
            if not tasks.leaving.is_set():
                # Celery exited, which can happen if Redis fails at the wrong moment.
                self.stderr.write("The worker exited unexpectedly and is restarting.")
                time.sleep(SECONDS_BEFORE_ANOTHER)
                os.execv(sys.executable, sys.orig_argv)  # noqa: S606 (the same command again)
