from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0012_tools")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="overrides",
            field=models.JSONField(
                null=True,
                help_text="what its request or the environment said otherwise than its policy",
            ),
        ),
    ]
