"""`contextlab doctor`: check the installation."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand

from contextlab.environment import port
from contextlab.operations.doctor import FAILED, OK, findings


class Command(BaseCommand):
    help = "Check the installation. Exits with 1 if a required check fails."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the port and output format."""
        parser.add_argument("--json", action="store_true", help="print JSON")
        parser.add_argument("--port", type=port, default=settings.PORT, help="the server's port")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line per check."""
        found = list(findings(options["port"]))
        if options["json"]:
            self.stdout.write(json.dumps([finding._asdict() for finding in found], indent=2))
        else:
            for name, state, text in found:
                mark = {OK: "ok  ", FAILED: "FAIL"}.get(state, "warn")
                self.stdout.write(f"{mark}  {name:<15} {text}")
        if any(finding.state == FAILED for finding in found):
            sys.exit(1)
