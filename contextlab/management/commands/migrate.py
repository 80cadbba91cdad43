"""`contextlab migrate`: Django's command, which also refuses databases it cannot migrate, and backs
up what it migrates."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands import migrate

from contextlab.schema import missing_migrations, only_migration


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
            super().handle(*args, **options)

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
