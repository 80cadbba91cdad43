"""Thinking blocks that the provider took out of a request."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the column."""

    dependencies = [("agent_sessions", "0027_opened_entries")]

    operations = [
        migrations.AddField(
            model_name="modelcall",
            name="dropped",
            field=models.PositiveIntegerField(
                help_text="thinking blocks that the provider took out of the request", null=True
            ),
        ),
    ]
