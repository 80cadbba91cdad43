"""Automatic migration, before anything reads the tables."""

from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations import Migration
from django.db.migrations.executor import MigrationExecutor

LAST_UNSQUASHED = "9ecb88f"
"""The last commit with the migrations replaced by this release's first one."""


def missing_migrations() -> list[Migration]:
    """Return the migrations that the database lacks.

    Raises CommandError for a database with only some of the migrations replaced by a squashed one:
    Django would drop that one from its graph and find nothing to do.
    """
    executor = MigrationExecutor(connection)
    loader = executor.loader
    if loader.replacements.keys() - loader.graph.nodes.keys():
        raise CommandError(
            "The database stopped partway through migrations that this version has merged into "
            f"one: run `contextlab migrate` of commit {LAST_UNSQUASHED} on it first, then of this "
            "version."
        )
    return [migration for migration, _ in executor.migration_plan(loader.graph.leaf_nodes())]


def bring_up_to_date() -> None:
    """Migrate SQLite; for PostgreSQL only check.

    Several servers may start on a shared database at once, so its migration is manual. Raises
    CommandError.
    """
    if not missing_migrations():
        return
    if connection.vendor != "sqlite":
        raise CommandError("The database is not up to date. Run `contextlab migrate`.")
    call_command("migrate", interactive=False, verbosity=0)
