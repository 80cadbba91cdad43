"""`contextlab migrate`: Django's command, which also refuses databases it cannot migrate."""

from typing import Any

from django.core.management.commands import migrate

from contextlab.schema import missing_migrations


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, unless the database is at a migration that no longer exists."""
        missing_migrations()
        super().handle(*args, **options)
