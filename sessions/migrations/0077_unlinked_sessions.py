"""Sub-agents that wait for their parents are found by an index."""

from importlib import import_module

from django.db import migrations, models

AddIndexBeside = import_module("sessions.migrations.0073_listed_indexes").AddIndexBeside


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("agent_sessions", "0076_run_rewritten"),
    ]

    operations = [
        AddIndexBeside(
            "session",
            models.Index(
                fields=["team", "parent_external_id"],
                condition=models.Q(parent=None, parent_external_id__gt=""),
                name="session_unlinked",
            ),
        ),
    ]
