"""`contextlab worker`: does jobs beside one or more servers, with Redis."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Does jobs for servers that share REDIS_URL and DATABASE_URL."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How much at once."""
        parser.add_argument("--concurrency", type=int, default=settings.JOB_THREADS)

    def handle(self, *args: Any, concurrency: int, **options: Any) -> None:
        """Runs until SIGTERM or SIGINT; running jobs are given back."""
        if not settings.REDIS_URL:
            raise CommandError("REDIS_URL is not set: `contextlab serve` does the jobs itself")
        from celery.signals import worker_shutting_down

        from contextlab.celery import app
        from contextlab.supervisor import Sweeper
        from sessions import tasks

        worker_shutting_down.connect(lambda **_: tasks.leaving.set(), weak=False)
        sweeper = Sweeper()
        sweeper.start()
        try:
            # Threads: a task only watches over a process of its own.
            app.worker_main(
                ["worker", "--pool=threads", f"--concurrency={concurrency}", "--loglevel=WARNING"]
                + ["--without-mingle", "--without-gossip"]
            )
        finally:
            sweeper.stop()
