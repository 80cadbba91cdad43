"""`contextlab proxy`: pass model calls on to their provider, and record or manage them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand

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

        from contextlab.proxy.app import application
        from contextlab.proxy.upstream import PROVIDERS

        providers = {name: options[name] or url for name, url in PROVIDERS.items()}
        self.stdout.write(f"The proxy listens on http://{host}:{port}. Stop it with Ctrl+C.")
        self.stdout.flush()
        uvicorn.run(
            application(server, providers), host=host, port=port, access_log=False, log_config=None
        )
