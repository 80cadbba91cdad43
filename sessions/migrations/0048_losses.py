"""The cost of losses instead of that of files read again."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def forget(apps: Any, _: Any) -> None:
    """Forget what is kept: the next page that needs it adds it up."""
    apps.get_model("agent_sessions", "DayTotals").objects.all().delete()
    apps.get_model("agent_sessions", "Session").objects.update(tallied_version=-1)


class Migration(migrations.Migration):
    """Replace the column: sessions are assessed again."""

    dependencies = [("agent_sessions", "0047_own_first")]

    operations = [
        migrations.RunPython(forget, forget),
        migrations.RemoveField("assessment", "reread_microusd"),
        migrations.AddField("assessment", "losses_microusd", models.BigIntegerField(null=True)),
    ]
