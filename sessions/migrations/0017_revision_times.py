from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0016_topic_judge")]

    operations = [
        migrations.AddField(
            model_name="revision",
            name="estimate_us",
            field=models.PositiveBigIntegerField(
                help_text="served: microseconds of counting tokens", null=True
            ),
        ),
        migrations.AddField(
            model_name="revision",
            name="shaping_us",
            field=models.PositiveBigIntegerField(
                help_text="served: microseconds of the rest of the fold's step", null=True
            ),
        ),
        migrations.AddField(
            model_name="revision",
            name="summary_ms",
            field=models.PositiveBigIntegerField(
                help_text="served: how long its summary took to be made", null=True
            ),
        ),
    ]
