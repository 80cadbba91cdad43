"""What tool definitions cost in each session, and graphs that a policy made from habits."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Add the columns, and an index of the sessions whose definitions are known."""

    dependencies = [("agent_sessions", "0029_week_totals")]

    operations = [
        migrations.AddField("assessment", "definitions", models.JSONField(default=dict)),
        migrations.AddField(
            "assessment", "unused_tokens", models.PositiveBigIntegerField(null=True)
        ),
        migrations.AddIndex(
            "assessment",
            models.Index(
                fields=["-changed"],
                name="assessment_with_definitions",
                condition=models.Q(unused_tokens__isnull=False),
            ),
        ),
        migrations.AddField(
            "toolgraph",
            "learned_from",
            models.PositiveIntegerField(
                null=True, help_text="sessions whose habits left tools out; null: set by request"
            ),
        ),
        migrations.AddField("toolgraph", "habits", models.JSONField(default=dict)),
    ]
