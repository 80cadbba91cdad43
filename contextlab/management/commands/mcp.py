"""`contextlab mcp`: read back, memory and contexts as tools for agents."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from contextlab.environment import port

PORT = 8767


class Command(BaseCommand):
    help = (
        "Offer tools to agents over the Model Context Protocol. They are read_back, "
        "search_memory, why_forgotten, session_status and compact_now. Without --http, over stdin "
        "and stdout."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the server, the session, and the transport."""
        parser.epilog = "Example: claude mcp add contextlab -- contextlab mcp --key KEY"
        parser.add_argument(
            "--url",
            default=os.environ.get("CONTEXTLAB_URL") or f"http://127.0.0.1:{settings.PORT}",
            help="the ContextLab server (or CONTEXTLAB_URL)",
        )
        parser.add_argument("--key", help="an API key of that server (or CONTEXTLAB_TOKEN)")
        parser.add_argument("--session", default="", help="id of the session that tools mean")
        parser.add_argument(
            "--http", action="store_true", help="streamable HTTP; each request brings its key"
        )
        parser.add_argument(
            "--host", default="127.0.0.1", help="with --http: the address to listen on"
        )
        parser.add_argument("--port", type=port, default=PORT, help=f"with --http; default: {PORT}")

    def handle(self, *args: Any, url: str, session: str, **options: Any) -> None:
        """Serve stdio until it closes, or HTTP until SIGTERM or SIGINT."""
        if find_spec("mcp") is None:
            raise CommandError("The MCP SDK is missing. Run `pip install 'contextlab[mcp]'`.")
        from contextlab.mcp_server import http_app, mcp_server

        if options["http"]:
            import uvicorn

            at = f"{options['host']}:{options['port']}"
            self.stderr.write(f"The MCP server listens on http://{at}/mcp. Stop it with Ctrl+C.")
            uvicorn.run(
                http_app(url, session, options["host"]),
                host=options["host"],
                port=options["port"],
                access_log=False,
                log_config=None,
            )
            return
        key = options["key"] or os.environ.get("CONTEXTLAB_TOKEN")
        if not key:
            raise CommandError(
                "No key. Pass --key or set CONTEXTLAB_TOKEN; `contextlab token create --team NAME` "
                "creates one.",
                returncode=2,
            )
        mcp_server(url, key, session).run()
