"""`contextlab verify`: check the whole store."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from sessions.actions.record import checks


class Command(BaseCommand):
    help = (
        "Check the store: hashes of all content, numbering, intervals, references, jobs, and on "
        "SQLite the file itself. Prints a line per finding and exits with 1 if there is any. "
        "Reads only, so the server may run meanwhile."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        total, rows, found = checks.total(), 0, 0
        listed: list[dict[str, str]] = []
        for part in checks.parts():
            rows += part.rows
            found += len(part.findings)
            self._progress(f"{part.stage}: {rows:,} of {total:,}")
            for finding in part.findings:
                if options["json"]:
                    listed.append(finding._asdict())
                else:
                    self.stdout.write(str(finding))
        self._progress("")
        if options["json"]:
            self.stdout.write(json.dumps({"rows": rows, "findings": listed}, indent=2))
        elif found:
            many = "1 finding" if found == 1 else f"{found} findings"
            self.stdout.write(f"{many}. Restore what is damaged from a backup.")
        else:
            self.stdout.write(f"Nothing wrong: {rows:,} sessions and blobs checked.")
        if found:
            sys.exit(1)

    def _progress(self, text: str) -> None:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{text:<60}", ending="")
            self.stderr.flush()
