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
    help = (
        "Run jobs for servers that share REDIS_URL and DATABASE_URL. `celery -A contextlab worker` "
        "does the same, with Celery's own options."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add concurrency and queues."""
        parser.add_argument(
            "--concurrency", type=int, default=settings.JOB_THREADS, help="jobs at once"
        )
        parser.add_argument(
            "--queues",
            default=",".join(settings.JOB_QUEUES),
            help="queues to work for, separated by commas (default: all)",
        )

    def handle(self, *args: Any, concurrency: int, queues: str, **options: Any) -> None:
        """Run until SIGTERM or SIGINT; running jobs are returned to the queue."""
        if not settings.REDIS_URL:
            raise CommandError(
                "REDIS_URL is not set. Without Redis, `contextlab serve` runs the jobs itself."
            )
        if unknown := set(queues.split(",")) - set(settings.JOB_QUEUES):
            raise CommandError(
                f"There is no queue {min(unknown)!r}. Use {' or '.join(settings.JOB_QUEUES)}.",
                returncode=2,
            )
        from contextlab.celery import app
        from sessions import tasks

        try:
            app.worker_main(
                ["worker", f"--concurrency={concurrency}", "--loglevel=WARNING"]
                + ["--queues", queues, "--without-mingle", "--without-gossip"]
                # Several on one machine: `celery inspect` finds each by its name.
                + ["--hostname", f"contextlab-{os.getpid()}@%h"]
            )
        finally:
            if not tasks.leaving.is_set():
                # Celery exited, which can happen if Redis fails at the wrong moment.
                self.stderr.write("The worker exited unexpectedly and is restarting.")
                time.sleep(SECONDS_BEFORE_ANOTHER)
                os.execv(sys.executable, sys.orig_argv)  # noqa: S606 (the same command again)
        if app.ended_with:
            sys.exit(app.ended_with)
