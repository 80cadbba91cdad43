"""`contextlab proxy`: pass model calls on to their provider, and record or manage them."""

from __future__ import annotations

import socket
from argparse import ArgumentParser
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from contextlab.environment import port

PORT = 8766


class Command(BaseCommand):
    help = "Pass model calls on to their provider, and record or manage them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add addresses."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=port, default=PORT)
        parser.add_argument(
            "--server", default=f"http://127.0.0.1:{settings.PORT}", help="the ContextLab server"
        )
        parser.add_argument("--anthropic", help="address of the Messages API's provider")
        parser.add_argument("--openai", help="address of the OpenAI API's provider")
        parser.add_argument("--gemini", help="address of the Gemini API's provider")

    def handle(self, *args: Any, host: str, port: int, server: str, **options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        import uvicorn

        from contextlab.processes import memory
        from contextlab.proxy.app import application
        from contextlab.proxy.upstream import PROVIDERS

        providers = {name: options[name] or url for name, url in PROVIDERS.items()}
        spool, root = settings.DATA_DIR / "proxy" / str(port), settings.FORCE_SCRIPT_NAME or ""
        app = application(server, providers, spool=spool, root=root)
        config = uvicorn.Config(app, access_log=False, log_config=None)
        with _listening(host, port) as at, suppress(KeyboardInterrupt):
            self.stdout.write(f"The proxy listens on http://{host}:{port}. Stop it with Ctrl+C.")
            self.stdout.flush()
            memory.collect_less()
            uvicorn.Server(config).run(sockets=[at])


def _listening(host: str, port: int) -> socket.socket:
    """A socket that accepts connections. Raises CommandError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]
        raise CommandError(
            f"The proxy cannot listen on {host}:{port}: {why}. Choose another address with "
            "--host and --port."
        ) from None
