from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0014_tunings")]

    operations = [
        migrations.AddField(
            model_name="artefact",
            name="unsupported",
            field=models.JSONField(
                default=list,
                help_text="what a model made up twice and was cut out with its sentences",
            ),
        ),
        migrations.AddField(
            model_name="factledger",
            name="quality",
            field=models.JSONField(default=list, help_text="measures that need no model"),
        ),
    ]
