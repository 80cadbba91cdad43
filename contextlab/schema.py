"""Brings the tables up to what this version needs, before anything reads them."""

from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def bring_up_to_date() -> None:
    """Migrates SQLite; of PostgreSQL it only says that it must be done.

    Several servers may start on a shared database at once: who changes it is said by hand.
    Raises CommandError.
    """
    executor = MigrationExecutor(connection)
    if not executor.migration_plan(executor.loader.graph.leaf_nodes()):
        return
    if connection.vendor != "sqlite":
        raise CommandError("The database is not up to date: run `contextlab migrate`.")
    call_command("migrate", interactive=False, verbosity=0)
