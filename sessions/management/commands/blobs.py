"""`contextlab blobs`: where content is, and its move into object storage or out of it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from sessions.actions.operations import objects
from sessions.models.record.objects import ObjectsAway


class Command(BaseCommand):
    help = (
        "Show whether content is in the database or in object storage. With `--move`, compare it "
        "with its hash and move it while servers run; a stopped move continues with the next run."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--move",
            choices=("objects", "database"),
            help="into object storage (CONTEXTLAB_BLOBS), or back into the database",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, move: str | None, **options: Any) -> None:
        if move and not settings.BLOBS:
            raise CommandError(
                "CONTEXTLAB_BLOBS is not set. Set it to s3://bucket/prefix first.", returncode=2
            )
        moves = {"objects": objects.move_to_objects, "database": objects.move_to_database}
        try:
            moved = moves[move](self._progress) if move else objects.Moved(0, 0, [])
        except ObjectsAway as error:
            raise CommandError(
                f"Object storage does not answer ({error}). What was moved stays so. Check "
                "CONTEXTLAB_BLOBS and AWS_ENDPOINT_URL, then run it again.",
                returncode=1,
            ) from None
        found = objects.places()
        if options["json"]:
            said = {"where": settings.BLOBS or None, "moved": moved._asdict(), **found}
            self.stdout.write(json.dumps(said))
        else:
            self._say(move, moved, found)
        if moved.left:
            raise CommandError(
                f"{len(moved.left)} blobs are missing or damaged, and stayed where they are, first "
                f"{moved.left[0]}. Restore them from a backup.",
                returncode=1,
            )

    def _say(self, move: str | None, moved: objects.Moved, found: dict[str, int]) -> None:
        if move:
            self.stdout.write(f"Moved {moved.blobs:,} blobs and {moved.uploads:,} uploads.")
        self.stdout.write(
            f"database: {found['database_blobs']:,} blobs, {found['database_bytes']:,} bytes"
        )
        self.stdout.write(
            f"{settings.BLOBS or 'object storage'}: {found['object_blobs']:,} blobs, "
            f"{found['object_bytes']:,} bytes; {found['to_remove']:,} objects to remove"
        )

    def _progress(self, done: int, total: int) -> None:
        if self.stderr.isatty():
            self.stderr.write(f"\r{done:,} of {total:,} blobs", ending="")
