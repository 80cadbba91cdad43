"""`contextlab migrate`: Django's command, which also refuses databases it cannot migrate, and backs
up what it migrates."""

from __future__ import annotations

import random
import time
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate
from django.db import OperationalError, connection

from contextlab.schema import missing_migrations, only_migration

LOCK_SECONDS = 3
"""How long a migration waits for a table on PostgreSQL: all who come later wait behind it."""
PAUSES = (0.5, 2.0)
"""Seconds between two tries, at random, so that an agent's own rhythm is not met each time."""
PATIENCE = 600.0
"""Seconds in which migrations that met others' locks are tried again."""
_OF_LOCKS = frozenset(("40P01", "55P03"))
"""PostgreSQL's states for a deadlock, and for a lock that was waited for too long."""


class Command(migrate.Command):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--no-backup", action="store_true", help="do not back up the database before it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate once no other process does, unless the database is at a migration that no longer
        exists, or the backup before it fails."""
        with only_migration():
            missing = missing_migrations()
            changes = not (options["plan"] or options["check_unapplied"])
            if (missing or options["migration_name"]) and changes and not options["no_backup"]:
                name = missing[-1].name if missing else options["migration_name"]
                self._back_up(name, options["verbosity"])
            self._migrate(*args, **options)

    def _migrate(self, *args: Any, **options: Any) -> None:
        """Migrate; again while agents hold what a migration needs. One that failed left nothing."""
        limit = time.monotonic() + PATIENCE
        while True:
            try:
                super().handle(*args, **options)
            except OperationalError as error:
                if getattr(error.__cause__, "sqlstate", None) not in _OF_LOCKS:
                    raise
                if time.monotonic() > limit:
                    raise CommandError(
                        f"Agents or long transactions held tables for {PATIENCE / 60:.0f} minutes. "
                        "What was applied stays. Run `contextlab migrate` again when less is at "
                        "work; servers of the old version may go on meanwhile."
                    ) from None
            else:
                return
            self.stdout.write(" waits for agents at work, and tries again")
            time.sleep(random.uniform(*PAUSES))  # noqa: S311 (no secret)

    def migration_progress_callback(
        self, action: str, migration: Any = None, fake: bool = False
    ) -> None:
        """Say what is done, and bound the wait of a migration that can be undone whole."""
        if action == "apply_start" and connection.vendor == "postgresql":
            seconds = LOCK_SECONDS if migration.atomic else 0
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds}s"])
        super().migration_progress_callback(action, migration, fake)

    def _back_up(self, name: str, verbosity: int) -> None:
        from contextlab.backup import backup
        from contextlab.backup.archive import BackupUnderway
        from contextlab.backup.postgres import DumpFailed

        try:
            place = backup.before_migration(name)
        except (BackupUnderway, DumpFailed, OSError) as error:
            raise CommandError(
                f"Nothing was migrated, because the backup before it failed: {error} "
                "`contextlab migrate --no-backup` does without."
            ) from None
        if place and verbosity:
            self.stdout.write(f"Backup before the migration: {place}")
