import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0011_budgets"),
    ]

    operations = [
        migrations.AddField(
            model_name="assessment",
            name="adrift_steps",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="assessment",
            name="checked_calls",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="assessment",
            name="judged_steps",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="assessment",
            name="schema_violations",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="assessment",
            name="tools",
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name="servedcontext",
            name="retry_of",
            field=models.PositiveIntegerField(
                help_text="failed step whose prefix and error this is, for `step` to do it again",
                null=True,
            ),
        ),
        migrations.CreateModel(
            name="ToolGraph",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("document", models.JSONField()),
                ("seq", models.PositiveIntegerField(default=0)),
                ("step", models.PositiveIntegerField(default=1)),
                ("taken", models.PositiveIntegerField(default=0)),
                ("fold", models.JSONField(default=dict)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_graphs",
                        to="agent_sessions.session",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="servedcontext",
            name="tools",
            field=models.ForeignKey(
                help_text="the graph by which its tools were chosen",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="served",
                to="agent_sessions.toolgraph",
            ),
        ),
        migrations.CreateModel(
            name="Retry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("step", models.PositiveIntegerField()),
                ("of_step", models.PositiveIntegerField()),
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="retry",
                        to="agent_sessions.message",
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="retries",
                        to="agent_sessions.session",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["session", "step"], name="retry_at_step")],
            },
        ),
        migrations.AddConstraint(
            model_name="toolgraph",
            constraint=models.UniqueConstraint(
                fields=("session", "number"), name="tool_graph_once"
            ),
        ),
    ]
