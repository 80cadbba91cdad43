from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0023_login_sources")]

    operations = [
        migrations.AddField(
            model_name="job",
            name="losses",
            field=models.PositiveSmallIntegerField(
                default=0,
                help_text="attempts that ended with their server or worker; they do not count",
            ),
        ),
    ]
