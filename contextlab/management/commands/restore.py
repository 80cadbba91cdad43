"""`contextlab restore`: restore a backup into an empty place."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from contextlab.backup import backup, objects
from contextlab.backup.archive import NotABackup
from contextlab.backup.backup import NotEmpty
from contextlab.backup.postgres import DumpFailed
from contextlab.management.commands.backup import said_of
from contextlab.schema import bring_up_to_date, only_migration
from sessions.actions.erasure import receipts
from sessions.actions.erasure.again import again
from sessions.models.record.objects import ObjectsAway


class Command(BaseCommand):
    help = (
        "Restore a backup into an empty data directory or database. Checks that it equals what "
        "was backed up. Killed halfway, it leaves the place empty."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("place", metavar="FILE", help="written by `backup`, here or at s3://…")
        parser.add_argument(
            "--erasures",
            type=Path,
            metavar="FILE",
            default=receipts.receipts_file(),
            help="receipts of what must be erased again (default: `erasures.jsonl` in the data "
            "directory)",
        )

    def handle(self, *args: Any, place: str, **options: Any) -> None:
        try:
            with only_migration(), objects.as_file(place) as file:
                manifest = backup.restore(file)
        except (NotABackup, DumpFailed, ObjectsAway) as error:
            raise CommandError(f"{place}: {error}", returncode=1) from None
        except NotEmpty as error:
            raise CommandError(str(error), returncode=1) from None
        except ValueError as error:
            raise CommandError(str(error), returncode=2) from None
        self.stdout.write(f"Restored {said_of(manifest)}")
        if receipts.kept_lines(options["erasures"]):
            connection.close()
            bring_up_to_date()
            done = again(options["erasures"])
            self.stdout.write(
                f"Erased again: {done.sessions} sessions, by {done.receipts} receipts."
            )
