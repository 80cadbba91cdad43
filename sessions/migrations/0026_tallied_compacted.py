"""Whether a session's managed context was compacted is kept with its day's sums."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def keep(apps: Any, _: Any) -> None:
    """Fill the column for the sessions that are tallied."""
    revisions = apps.get_model("agent_sessions", "Revision").objects
    made = revisions.filter(run__origin="managed", edits__strategy="compact")
    sessions = apps.get_model("agent_sessions", "Session").objects
    sessions.filter(pk__in=made.values("run__session")).update(tallied_compacted=True)


class Migration(migrations.Migration):
    """Add the column and fill it."""

    dependencies = [("agent_sessions", "0025_indexes")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="tallied_compacted",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="its managed context was compacted by then",
            ),
        ),
        migrations.RunPython(keep, migrations.RunPython.noop),
    ]
