"""`contextlab push`: send an agent's logs to a server."""

from __future__ import annotations

import os
import sqlite3
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from contextlab.client import Misaddressed, Refused, Unreachable
from contextlab.client.connection import Connection
from contextlab.client.push import Sent, push, usual_folders, watch

PATIENCE = 60.0
"""Seconds for which an upload is tried again."""


class Command(BaseCommand):
    help = (
        "Send logs to a server, which imports them. Of folders, the *.jsonl files below them; "
        "only what is new or has grown since the last push."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the logs, the server, and the mode."""
        parser.epilog = "Example: contextlab push --url https://lab.example.com --watch"
        parser.add_argument(
            "paths",
            nargs="*",
            type=Path,
            metavar="PATH",
            help="files or folders (default: ~/.claude/projects and ~/.codex/sessions)",
        )
        parser.add_argument(
            "--url",
            default=os.environ.get("CONTEXTLAB_URL") or f"http://127.0.0.1:{settings.PORT}",
            help="the ContextLab server (or CONTEXTLAB_URL)",
        )
        parser.add_argument("--key", help="an API key of that server (or CONTEXTLAB_TOKEN)")
        parser.add_argument(
            "--watch", action="store_true", help="go on, and send logs as they grow"
        )

    def handle(self, *args: Any, paths: list[Path], url: str, **options: Any) -> None:
        """Send until all is sent, or until Ctrl+C."""
        key = options["key"] or os.environ.get("CONTEXTLAB_TOKEN")
        _check(paths, url, key, options["watch"])
        sent = bad = 0
        try:
            state = Sent(settings.DATA_DIR, url, str(key))
            with Connection(url, key, patience=PATIENCE) as server:
                if options["watch"]:
                    logs = watch(server, state, paths)
                else:
                    logs = push(server, state, paths or usual_folders())
                for log in logs:
                    bad += bool(log.problem)
                    sent += not log.problem
                    self._print(log.path, log.size, log.problem)
        except Misaddressed as problem:
            raise CommandError(f"{problem}.", returncode=1) from None
        except Unreachable as problem:
            raise CommandError(f"{problem}. Run it again: it goes on where it stopped.") from None
        except Refused as problem:
            raise CommandError(f"{url} refused: {problem}", returncode=1) from None
        except sqlite3.Error as problem:
            raise CommandError(
                f"The list of sent logs failed: {problem}. Delete push-*.sqlite3 in "
                f"{settings.DATA_DIR} to send all again; the server takes only what is new."
            ) from None
        report = f"{url.rstrip('/')}/imports/ shows what became of them."
        if sent or not bad:
            self.stdout.write(f"{sent} sent. {report}" if sent else "Nothing new to send.")
        if bad:
            raise CommandError(f"{bad} could not be sent; the lines above say why.", returncode=1)

    def _print(self, path: Path, size: int, problem: str) -> None:
        if problem:
            self.stderr.write(f"failed  {path}: {problem}")
        else:
            self.stdout.write(f"sent  {path}  {size:,} bytes")
            self.stdout.flush()


def _check(paths: list[Path], url: str, key: str | None, watching: bool) -> None:
    """Raise CommandError for what needs no server to be wrong."""
    if not url.startswith(("http://", "https://")):
        raise CommandError(
            f"{url} is no address of a server. Begin it with https://.", returncode=2
        )
    if not key:
        raise CommandError(
            "No key. Pass --key or set CONTEXTLAB_TOKEN; Settings → Keys creates one.",
            returncode=2,
        )
    if missing := [path for path in paths if not path.exists()]:
        raise CommandError(f"No such file or folder: {missing[0]}", returncode=2)
    if not paths and not watching and not usual_folders():
        raise CommandError(
            "Neither ~/.claude/projects nor ~/.codex/sessions exists. Name a file or folder.",
            returncode=2,
        )
