"""`contextlab export`: write a session to a file."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError

from compaction.redaction.redact import Masker
from sessions.actions.accounts import audit
from sessions.actions.record.export import export
from sessions.management.named import SESSION_HELP, find_session


class Command(BaseCommand):
    help = (
        "Write a session with its sub-agents as JSON lines: messages, model calls, runs with their "
        "edits, policies, reviews and notes. `import` makes the same session of it. Secrets and "
        "personal data are masked; the last line on stderr counts them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", help=SESSION_HELP)
        parser.add_argument("-o", "--output", type=Path, help="a new file (default: stdout)")
        parser.add_argument("--unmasked", action="store_true", help="write everything as stored")
        parser.add_argument("--team", default=None, help="team slug (default: the local team)")

    def handle(self, *args: Any, session: str, output: Path | None, **options: Any) -> None:
        found = find_session(session, options["team"])
        masker = None if options["unmasked"] else Masker()
        masked = masker is not None
        lines = 0
        with self._opened(output) as file:
            # Before the first line, because even a partial export has left the system.
            audit.note(found.team, audit.COMMAND, "export.made", found.external_id, masked=masked)
            for line in export(found, masker):
                file.write(json.dumps(line) + "\n")
                lines += 1
        said = "nothing masked"
        if masker is not None:
            counted = ", ".join(f"{n} {kind}" for kind, n in sorted(masker.masked.items()))
            said = f"masked: {counted or 'nothing found to mask'}"
        self.stderr.write(f"{lines} lines; {said}.")

    @contextmanager
    def _opened(self, output: Path | None) -> Iterator[IO[str]]:
        if output is None:
            yield self.stdout  # type: ignore[misc]
            return
        try:
            with output.open("x", encoding="utf-8") as file:
                try:
                    yield file
                except BaseException:
                    output.unlink()  # a partial file would look complete
                    raise
        except FileExistsError:
            raise CommandError(
                f"{output} already exists. Choose another file.", returncode=2
            ) from None
        except OSError as error:
            raise CommandError(f"{output}: {error.strerror}.", returncode=1) from None
