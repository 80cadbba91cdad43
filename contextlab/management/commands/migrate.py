"""`contextlab migrate`: Django's command, which also refuses databases it cannot migrate."""

from typing import Any

from django.core.management.commands import migrate

from contextlab.schema import missing_migrations, only_migration


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate once no other process does, unless the database is at a migration that no longer
        exists."""
        with only_migration():
            missing_migrations()
            super().handle(*args, **options)
