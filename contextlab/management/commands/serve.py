"""`contextlab serve`: pages, API, WebSockets and the worker in one process."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import IO, TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import connection, connections
from django.urls import reverse

from contextlab import watch
from contextlab.database import keep_connections
from contextlab.environment import port
from contextlab.operations import safety
from contextlab.processes import clean_stop, job, memory, supervisor
from contextlab.schema import bring_up_to_date
from sessions import live
from sessions.actions.accounts.addresses import renew_address, why_off
from sessions.actions.accounts.logins import has_passwords
from sessions.actions.accounts.teams import local_user
from sessions.actions.assessments import assess
from sessions.actions.jobs import jobs
from sessions.actions.record import verify
from sessions.actions.search import indexing
from sessions.actions.web import forks
from sessions.actions.web.addresses import base_url
from sessions.management.addresses import login_url

if TYPE_CHECKING:
    from contextlab.door.server import LimitedServer


def way_in() -> str:
    """Say how to sign in; the address to open is the last line."""
    if not why_off():
        return f"Open this URL; it signs you in once:\n{login_url(renew_address())}"
    first = "" if has_passwords() else "Create the first account with `contextlab invite`. "
    return f"{first}Sign in here:\n{base_url()}{reverse('home')}"


class Command(BaseCommand):
    help = "Run the dashboard, with a job worker unless REDIS_URL is set."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add host and port."""
        parser.add_argument("--host", default=settings.HOST, help="address to listen on")
        parser.add_argument("--port", type=port, default=settings.PORT, help="port to listen on")

    def handle(self, *args: Any, host: str, **options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        memory.share_heaps()
        settings.HOST, settings.PORT = (
            host,
            options["port"],
        )  # links in notifications, sent by forks
        if not settings.REDIS_URL and sys.platform == "linux":  # macOS's libraries do not fork
            job.load()
            forks.begin()
        import daphne.server  # noqa: F401 (before any reactor: installs asyncio's; not in forks)

        warnings = safety.check_start(host, options["port"])
        lock = self._claim_data_dir()
        self._prepare_database()
        watch.start("contextlab-web")
        if clean_stop.died(settings.DATA_DIR):
            verify.ask()
        self.mark = clean_stop.ServerMark(settings.DATA_DIR)
        for warning in warnings:
            self.stderr.write(f"Warning: {warning}.")
        self.invitation = way_in()
        connections.close_all()
        self.beside: list[
            supervisor.ArrivalsWriter | supervisor.JobThreads | supervisor.Sweeper
        ] = [supervisor.ArrivalsWriter()]
        if not settings.REDIS_URL:
            self.beside += [supervisor.JobThreads(), supervisor.Sweeper()]
        # Make threads release the GIL sooner, for the event loop.
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
        bring_up_to_date(apart=True)  # it would leave 25 MB in a server that runs for weeks
        if connection.vendor == "sqlite" and not settings.REDIS_URL:
            jobs.requeue_all()
        local_user()
        assess.ask_everywhere()
        indexing.ask_everywhere()
        connections.close_all()
        keep_connections()

    def _serve(self, host: str, port: int) -> None:
        from twisted.internet import reactor

        from contextlab.door import stopping

        server = self._listening(host, port)
        failures: list[Any] = []

        def not_listening(failure: Any) -> None:
            failures.append(failure)
            server.stop()  # not reactor.stop(), which hangs until the reactor runs

        server.listen_error = not_listening
        reactor.addSystemEventTrigger("before", "shutdown", self._stop_beside)
        reactor.addSystemEventTrigger("before", "shutdown", server.drain)
        server.run()
        live.server_loop = None
        self.mark.end()
        if failures:
            raise CommandError(
                f"cannot listen on {host}:{port} ({failures[0].type.__name__}): is another server"
                " using it? Choose another with --port or PORT"
            )
        if unfinished := server.door.lanes.running():
            # Their threads would keep the interpreter from ending.
            stopping.end_now(0, f"stopped with {unfinished} requests in progress")

    def _listening(self, host: str, port: int) -> LimitedServer:
        from twisted.internet import reactor

        from contextlab.asgi import application
        from contextlab.door.server import LimitedServer

        return LimitedServer(
            application,
            endpoints=[f"tcp:port={port}:interface={host.replace(':', chr(92) + ':')}"],
            ready_callable=lambda: reactor.callWhenRunning(self._begin),
            verbosity=0,
            # Pages send only a list of ids.
            websocket_max_message_size=64 * 1024,
            websocket_max_frame_size=64 * 1024,
            websocket_timeout=12 * 3600,  # less than the 24 h after which Redis forgets a group
            server_name="",
        )

    def _begin(self) -> None:
        """Start what runs beside the server, once the reactor runs."""
        from twisted.internet import reactor

        from contextlab.door import stopping

        stopping.on_signal(lambda: reactor.callFromThread(reactor.stop))
        memory.collect_less()
        live.server_loop = reactor._asyncioEventloop
        for part in self.beside:
            part.start()
        self.stdout.write(f"ContextLab is running. Stop it with Ctrl+C. {self.invitation}")
        self.stdout.flush()

    def _stop_beside(self) -> Any:
        from twisted.internet.threads import deferToThread

        # The reactor keeps running meanwhile, so that last updates reach the pages.
        return deferToThread(lambda: [part.stop() for part in self.beside])
