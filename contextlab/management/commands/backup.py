"""`contextlab backup`: back up the store while it is in use."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from contextlab.backup import archive, backup
from contextlab.backup.archive import BackupUnderway, Manifest, NotABackup
from contextlab.backup.postgres import DumpFailed


class Command(BaseCommand):
    help = (
        "Write the whole store into one file, as of one moment, while servers and workers use it. "
        "PostgreSQL needs `pg_dump`. `secret_key` is not part of it. With `--check`, read an "
        "existing backup instead and compare its hash."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "place",
            nargs="?",
            type=Path,
            metavar="FILE",
            help="a new file, or a folder (default: backups/ in the data directory)",
        )
        parser.add_argument("--check", action="store_true", help="check the backup in FILE")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, place: Path | None, **options: Any) -> None:
        if options["check"] and place is None:
            raise CommandError("`--check` needs the file of a backup.", returncode=2)
        place = place or backup.folder()
        if not options["check"] and (place.is_dir() or place == backup.folder()):
            place /= archive.name_now()
        try:
            manifest = backup.check(place) if options["check"] else backup.take(place)
        except (NotABackup, DumpFailed) as error:
            raise CommandError(f"{place}: {error}", returncode=1) from None
        except BackupUnderway as error:
            raise CommandError(
                f"Another backup is being written into {error}. Wait for its end, or choose "
                "another folder.",
                returncode=1,
            ) from None
        except FileExistsError:
            raise CommandError(f"{place} already exists. Choose another.", returncode=2) from None
        if options["json"]:
            self.stdout.write(json.dumps({"file": str(place), **asdict(manifest)}))
        else:
            self.stdout.write(f"{place}: {said_of(manifest)}")


def said_of(manifest: Manifest) -> str:
    """What a backup holds, in a line."""
    sessions = manifest.rows.get("agent_sessions_session", 0)
    return (
        f"{sessions:,} sessions, {sum(manifest.rows.values()):,} rows, {manifest.bytes:,} bytes, "
        f"of {manifest.created}, SHA-256 {manifest.sha256}"
    )
