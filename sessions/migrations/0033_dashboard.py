"""What was read again, of assessments; sums of days by agent, model and policy."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def forget(apps: Any, _: Any) -> None:
    """Forget what is kept: the next page that needs it adds it up."""
    apps.get_model("agent_sessions", "DayTotals").objects.all().delete()
    apps.get_model("agent_sessions", "Session").objects.update(tallied_version=-1)


class Migration(migrations.Migration):
    """Add the columns."""

    dependencies = [("agent_sessions", "0032_search")]

    operations = [
        migrations.RunPython(forget, forget),
        migrations.AddField("assessment", "reread_microusd", models.BigIntegerField(null=True)),
        migrations.AddField("daytotals", "slices", models.TextField(default="[]")),
    ]
