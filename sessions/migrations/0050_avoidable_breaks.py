"""Whether breaks are avoidable, decided once for each session."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

AVOIDABLE = ("model", "tools", "system", "settings", "images", "restart", "look_back", "edit")


def judge(apps: Any, _: Any) -> None:
    """Judge all but expired TTLs, which the next assessment of their session does, and forget what
    is kept: the next page that needs it adds it up."""
    totals = apps.get_model("agent_sessions", "BreakTotals").objects
    totals.filter(cause__in=AVOIDABLE).update(avoidable=True)
    apps.get_model("agent_sessions", "DayTotals").objects.all().delete()
    apps.get_model("agent_sessions", "Session").objects.update(tallied_version=-1)


class Migration(migrations.Migration):
    """Add the column: sessions are assessed again."""

    dependencies = [("agent_sessions", "0049_missed")]

    operations = [
        migrations.AddField("breaktotals", "avoidable", models.BooleanField(default=False)),
        migrations.RemoveConstraint("breaktotals", "break_cause_once"),
        migrations.AddConstraint(
            "breaktotals",
            models.UniqueConstraint(
                fields=["session", "cause", "avoidable"], name="break_cause_once"
            ),
        ),
        migrations.RunPython(judge, migrations.RunPython.noop),
    ]
