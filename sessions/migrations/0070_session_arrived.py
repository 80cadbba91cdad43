"""What arrived since a moment is found by an index."""

from importlib import import_module

from django.db import migrations, models

PARTIAL = import_module("sessions.migrations.0047_own_first").PARTIAL


class Migration(migrations.Migration):

    dependencies = [
        ("agent_sessions", "0069_review_rank"),
    ]

    operations = [
        # Removed first: who locks the table for that after building an index meets a deadlock.
        # Of indexes that cost the same, SQLite takes the one made last: the small ones.
        *(migrations.RemoveIndex("session", name) for name in PARTIAL),
        migrations.AddIndex(
            "session", models.Index(fields=["team", "created"], name="session_arrived")
        ),
        *(
            migrations.AddIndex("session", models.Index(fields=["team"], condition=rows, name=name))
            for name, rows in PARTIAL.items()
        ),
    ]
