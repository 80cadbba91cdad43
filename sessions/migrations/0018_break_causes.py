from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0017_revision_times")]

    operations = [
        migrations.AddField(
            model_name="modelcall",
            name="settings",
            field=models.CharField(
                blank=True,
                default="",
                help_text="level of thinking or effort, as the log says",
                max_length=60,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="modelcall",
            name="client",
            field=models.CharField(
                blank=True,
                default="",
                help_text="which start of the client sent it, as the log says",
                max_length=60,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="run",
            name="engine",
            field=models.PositiveSmallIntegerField(
                default=0, help_text="the rules that its figures were measured by"
            ),
        ),
        migrations.AddField(
            model_name="assessment",
            name="unexplained_microusd",
            field=models.BigIntegerField(null=True),
        ),
    ]
