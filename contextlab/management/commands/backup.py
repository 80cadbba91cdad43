"""`contextlab backup`: back up the store while it is in use."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from contextlab.backup import archive, backup, objects
from contextlab.backup.archive import BackupUnderway, Manifest, NotABackup
from contextlab.backup.objects import ObjectsMissing
from contextlab.backup.postgres import DumpFailed
from sessions.models.record.objects import ObjectsAway

LEFT_SECONDS = 24 * 3600


class Command(BaseCommand):
    help = (
        "Write the whole store into one file while servers and workers run. It is as of one "
        "moment. PostgreSQL needs `pg_dump`. `secret_key` is not part of it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "place",
            nargs="?",
            metavar="FILE",
            help="a new file, a folder, or s3://bucket/prefix/ (default: backups/ in the data "
            "directory)",
        )
        parser.add_argument("--to", metavar="FILE", help="the same as FILE")
        parser.add_argument(
            "--check",
            action="store_true",
            help="read the backup in FILE instead, and compare its hash",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, place: str | None, **options: Any) -> None:
        if options["check"] and not (place or options["to"]):
            raise CommandError("`--check` needs the file of a backup.", returncode=2)
        place = place or options["to"] or str(backup.folder())
        try:
            if options["check"]:
                with objects.as_file(place) as file:
                    manifest = backup.check(file)
            else:
                place = _new(place)
                manifest = _take(place)
        except (NotABackup, DumpFailed, ObjectsMissing, ObjectsAway) as error:
            raise CommandError(f"{place}: {error}", returncode=1) from None
        except ValueError as error:
            raise CommandError(str(error), returncode=2) from None
        except BackupUnderway as error:
            raise CommandError(
                f"Another backup is being written into {error}. Wait for its end, or choose "
                "another folder.",
                returncode=1,
            ) from None
        except FileExistsError:
            raise CommandError(f"{place} already exists. Choose another.", returncode=2) from None
        if options["json"]:
            self.stdout.write(json.dumps({"file": place, **asdict(manifest)}))
        else:
            self.stdout.write(f"{place}: {said_of(manifest)}")


def _new(place: str) -> str:
    """The place of a new backup: in a folder it gets a name."""
    if place.startswith(objects.SCHEME):
        return place if place.endswith(".zip") else f"{place.rstrip('/')}/{archive.name_now()}"
    file = Path(place)
    if place.endswith(("/", os.sep)):
        file.mkdir(parents=True, exist_ok=True)
    return str(file / archive.name_now() if file.is_dir() or file == backup.folder() else file)


def _take(place: str) -> Manifest:
    if not place.startswith(objects.SCHEME):
        return backup.take(Path(place))
    # Of a name of its own: another backup may be under way in the folder.
    with tempfile.TemporaryDirectory(prefix=".sending-", dir=_made(backup.folder())) as folder:
        file = Path(folder) / "backup.zip"
        manifest = backup.take(file)
        objects.send(file, place)
        return manifest


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in folder.glob(".sending-*"):  # of a killed one
        if time.time() - left.stat().st_mtime > LEFT_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
    return folder


def said_of(manifest: Manifest) -> str:
    """What a backup holds, in a line."""
    sessions = manifest.rows.get("agent_sessions_session", 0)
    objects = f"{manifest.objects:,} objects, " if manifest.objects else ""
    return (
        f"{sessions:,} sessions, {sum(manifest.rows.values()):,} rows, {manifest.bytes:,} bytes, "
        f"{objects}of {manifest.created}, SHA-256 {manifest.sha256}"
    )
