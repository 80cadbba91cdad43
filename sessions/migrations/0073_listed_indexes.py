"""Sessions of a policy, and review items newest first, are found by indexes.

On PostgreSQL they are built while others write (CREATE INDEX CONCURRENTLY). Django's own operation
for that needs psycopg, which an installation with SQLite does not have.
"""

from typing import Any

from django.db import migrations, models


class AddIndexBeside(migrations.AddIndex):
    """Add an index without keeping writers waiting."""

    atomic = False

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        with schema_editor.connection.cursor() as cursor:
            # One that was interrupted is there, but invalid.
            cursor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.index.name}"')
        schema_editor.add_index(model, self.index, concurrently=True)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("agent_sessions", "0072_call_response"),
    ]

    operations = [
        AddIndexBeside(
            "session",
            models.Index(
                fields=["team", "policy_version", "demo"],
                condition=models.Q(policy_version__isnull=False),
                name="session_policy",
            ),
        ),
        AddIndexBeside(
            "reviewitem",
            models.Index(fields=["team", "-created", "-id"], name="review_newest"),
        ),
    ]
