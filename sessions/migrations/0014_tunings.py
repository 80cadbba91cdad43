import django.db.models.deletion
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0013_session_overrides"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Tuning",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "objective",
                    models.CharField(choices=[("cheap", "cheap"), ("lean", "lean")], max_length=5),
                ),
                ("chosen", models.JSONField(default=dict)),
                ("sessions", models.JSONField(default=list)),
                ("held", models.JSONField(default=list)),
                ("limit", models.PositiveIntegerField()),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "base",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="agent_sessions.policyversion",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="tunings",
                        to="agent_sessions.job",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tunings",
                        to="agent_sessions.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TuningTrial",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("name", models.CharField(blank=True, max_length=120)),
                ("document", models.JSONField(default=dict)),
                ("figures", models.JSONField(default=dict)),
                ("held", models.JSONField(null=True)),
                (
                    "tuning",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="trials",
                        to="agent_sessions.tuning",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="tuning",
            index=models.Index(fields=["team", "-created"], name="tuning_newest"),
        ),
        migrations.AddConstraint(
            model_name="tuningtrial",
            constraint=models.UniqueConstraint(
                fields=("tuning", "number"), name="trial_once_per_tuning"
            ),
        ),
    ]
