"""`contextlab serve`: pages, API, websockets and the worker in one process."""

import sys
from argparse import ArgumentParser
from typing import IO, Any

import daphne.server  # noqa: F401 (first: installs the asyncio reactor)
from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import connection, connections

from contextlab import supervisor
from contextlab.environment import port
from contextlab.garbage import collect_less
from contextlab.schema import bring_up_to_date
from sessions import live
from sessions.actions import assess, jobs
from sessions.actions.teams import local_user


class Command(BaseCommand):
    help = "Serves the dashboard; without REDIS_URL a worker for jobs runs along."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to listen."""
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=port, default=settings.PORT)

    def handle(self, *args: Any, host: str, **options: Any) -> None:
        """Runs until SIGTERM or SIGINT."""
        lock = self._claim_data_dir()
        self._prepare_database()
        self.beside: list[supervisor.EmbeddedWorker | supervisor.Sweeper] = []
        if not settings.REDIS_URL:
            from contextlab.celery import app

            self.beside = [supervisor.EmbeddedWorker(app), supervisor.Sweeper()]
        # Threads that hold the GIL in pure Python give it up sooner, for the loop's sake.
        sys.setswitchinterval(0.001)
        try:
            self._serve(host, options["port"])
        finally:
            if lock is not None:
                lock.close()

    def _claim_data_dir(self) -> IO[str] | None:
        if settings.REDIS_URL:
            return None
        try:
            return supervisor.only_server(settings.DATA_DIR)
        except supervisor.AlreadyServed as error:
            raise CommandError(str(error)) from None

    def _prepare_database(self) -> None:
        bring_up_to_date()
        if connection.vendor == "sqlite" and not settings.REDIS_URL:
            jobs.requeue_all()
        local_user()
        assess.ask_everywhere()
        connections.close_all()

    def _serve(self, host: str, port: int) -> None:
        from twisted.internet import reactor
        from twisted.internet.threads import deferToThread

        from contextlab.asgi import application
        from contextlab.limits import LimitedServer

        def ready() -> None:
            collect_less()
            live.server_loop = reactor._asyncioEventloop
            for part in self.beside:
                part.start()
            name = "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104
            self.stdout.write("ContextLab is running. Stop it with Ctrl+C. Open this address:")
            self.stdout.write(f"http://{name}:{port}/login/{settings.LOGIN_TOKEN}/")
            self.stdout.flush()

        def stop_beside() -> Any:
            # The reactor keeps running meanwhile, so that the last news reach the pages.
            return deferToThread(lambda: [part.stop() for part in self.beside])

        failures: list[Any] = []

        def not_listening(failure: Any) -> None:
            failures.append(failure)
            server.stop()  # not reactor.stop(), which hangs as long as the reactor does not run

        server = LimitedServer(
            application,
            endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
            ready_callable=lambda: reactor.callWhenRunning(ready),
            verbosity=0,
            # Pages send a list of ids, nothing else.
            websocket_max_message_size=64 * 1024,
            websocket_max_frame_size=64 * 1024,
            websocket_timeout=12 * 3600,  # below the 24 h after which Redis forgets a group
            server_name="",
        )
        server.listen_error = not_listening
        reactor.addSystemEventTrigger("before", "shutdown", stop_beside)
        server.run()
        live.server_loop = None
        if failures:
            raise CommandError(
                f"cannot listen on {host}:{port} ({failures[0].type.__name__}): is another server"
                " using it? Choose another with --port or PORT"
            )
