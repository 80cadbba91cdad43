"""`contextlab login`: print an address that signs in the local user once."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sessions.actions.accounts.addresses import VALID, renew_address, why_off
from sessions.management.addresses import login_url


class Command(BaseCommand):
    help = (
        "Print an address that signs in the local user once. It ends the address printed before. "
        "Only on a server for this machine alone, without accounts that have a password."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port", type=int, default=settings.PORT, help="port of the server (default: PORT)"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        settings.PORT = options["port"]
        if reason := why_off():
            raise CommandError(
                f"There is no login address, because {reason}. Sign in with a password, or run "
                "`contextlab invite` to create an account."
            )
        address = login_url(renew_address())
        if options["json"]:
            self.stdout.write(json.dumps({"url": address, "hours": VALID.total_seconds() / 3600}))
        else:
            self.stdout.write(
                f"{address}\n\nSigns you in once, within {VALID.days * 24} hours, as owner of the "
                "local team. The address printed before no longer works."
            )
