"""Originals are insert-only: the database itself refuses to change them.

Deleting is left to erasure, which the application alone performs.
"""

from django.db import migrations

TABLES = ("agent_sessions_blob", "agent_sessions_message", "agent_sessions_block")

POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION contextlab_refuse_update() RETURNS trigger AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = 'originals are insert-only: ' || TG_TABLE_NAME;
END $$ LANGUAGE plpgsql;
"""


def guard(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    if vendor == "postgresql":
        schema_editor.execute(POSTGRES_FUNCTION)
    for table in TABLES:
        if vendor == "sqlite":
            schema_editor.execute(
                f"CREATE TRIGGER {table}_immutable BEFORE UPDATE ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'originals are insert-only'); END"
            )
        elif vendor == "postgresql":
            schema_editor.execute(
                f"CREATE TRIGGER {table}_immutable BEFORE UPDATE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION contextlab_refuse_update()"
            )


def unguard(apps, schema_editor):
    for table in TABLES:
        on = f" ON {table}" if schema_editor.connection.vendor == "postgresql" else ""
        schema_editor.execute(f"DROP TRIGGER IF EXISTS {table}_immutable{on}")


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0001_initial")]
    operations = [migrations.RunPython(guard, unguard)]
