"""The audit log is append-only: the database itself refuses to change an entry."""

from django.db import migrations

TABLE = "agent_sessions_auditentry"

POSTGRES_FUNCTION = """
CREATE OR REPLACE FUNCTION contextlab_refuse_audit_update() RETURNS trigger AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = 'the audit log is append-only';
END $$ LANGUAGE plpgsql;
"""


def guard(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(POSTGRES_FUNCTION)
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_appends BEFORE UPDATE ON {TABLE} "
            "FOR EACH ROW EXECUTE FUNCTION contextlab_refuse_audit_update()"
        )
    elif schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(
            f"CREATE TRIGGER {TABLE}_appends BEFORE UPDATE ON {TABLE} "
            "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
        )


def unguard(apps, schema_editor):
    on = f" ON {TABLE}" if schema_editor.connection.vendor == "postgresql" else ""
    schema_editor.execute(f"DROP TRIGGER IF EXISTS {TABLE}_appends{on}")


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0007_tuning")]
    operations = [migrations.RunPython(guard, unguard)]
