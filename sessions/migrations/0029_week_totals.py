"""Kept sums of weeks beside those of days, and the extent of a day as columns."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models


def forget(apps: Any, _: Any) -> None:
    """Forget what is kept: the next page that needs it adds it up."""
    apps.get_model("agent_sessions", "DayTotals").objects.all().delete()
    apps.get_model("agent_sessions", "Session").objects.update(tallied_version=-1)


class Migration(migrations.Migration):
    """Add the columns."""

    dependencies = [("agent_sessions", "0028_dropped_thinking")]

    operations = [
        migrations.RunPython(forget, forget),
        migrations.RemoveConstraint(model_name="daytotals", name="day_once_per_team"),
        migrations.AddField("daytotals", "days", models.PositiveSmallIntegerField(default=1)),
        migrations.AddField("daytotals", "sessions", models.PositiveBigIntegerField(default=0)),
        migrations.AddField("daytotals", "first", models.PositiveBigIntegerField(default=0)),
        migrations.AddField("daytotals", "last", models.PositiveBigIntegerField(default=0)),
        migrations.AddField("daytotals", "cost", models.BigIntegerField(null=True)),
        migrations.AddConstraint(
            "daytotals",
            models.UniqueConstraint(fields=["team", "days", "day"], name="day_once_per_team"),
        ),
    ]
