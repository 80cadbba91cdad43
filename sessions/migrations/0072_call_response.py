"""Spans of one response are found by its id, in whichever session they are."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("agent_sessions", "0071_assessment_missing"),
    ]

    operations = [
        migrations.AddField(
            "modelcall",
            "response",
            models.CharField(
                max_length=200,
                null=True,
                help_text="the provider's id of the response, if `call` is none",
            ),
        ),
        migrations.AddIndex(
            "modelcall",
            models.Index(
                fields=["response"],
                condition=models.Q(("response__isnull", False)),
                name="call_by_response",
            ),
        ),
    ]
