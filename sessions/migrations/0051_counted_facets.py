"""Kept counts of the list's filters leave out demo sessions beside real ones."""

from __future__ import annotations

from typing import Any

from django.db import migrations


def forget(apps: Any, _: Any) -> None:
    """Forget what is kept: the next page that needs it adds it up."""
    apps.get_model("agent_sessions", "DayTotals").objects.all().delete()
    apps.get_model("agent_sessions", "Session").objects.update(tallied_version=-1)


class Migration(migrations.Migration):
    """Days are added up again."""

    dependencies = [("agent_sessions", "0050_avoidable_breaks")]

    operations = [migrations.RunPython(forget, migrations.RunPython.noop)]
