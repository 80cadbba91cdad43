import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0010_boards"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Budget",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[("session", "Session"), ("task", "Task"), ("agent", "Agent")],
                        max_length=8,
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=300)),
                (
                    "period",
                    models.CharField(
                        blank=True,
                        choices=[("", "in all"), ("day", "a day"), ("month", "a month")],
                        max_length=5,
                    ),
                ),
                ("tokens", models.BigIntegerField(null=True)),
                ("microusd", models.BigIntegerField(null=True)),
                (
                    "mode",
                    models.CharField(
                        choices=[("hard", "Hard"), ("soft", "Soft"), ("approval", "Approval")],
                        default="soft",
                        max_length=8,
                    ),
                ),
                ("warn", models.PositiveSmallIntegerField(default=80, help_text="percent")),
                ("active", models.BooleanField(default=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("changed", models.DateTimeField(auto_now=True)),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="budgets",
                        to="agent_sessions.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Reservation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("call", models.CharField(max_length=200)),
                ("tokens", models.BigIntegerField()),
                ("microusd", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("settled", "Settled"),
                            ("released", "Released"),
                        ],
                        default="open",
                        max_length=8,
                    ),
                ),
                ("uses", models.JSONField(default=list, help_text="ids of what it is held in")),
                ("answer", models.JSONField(default=dict)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("expires", models.DateTimeField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reservations",
                        to="agent_sessions.session",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Use",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=300)),
                ("term", models.CharField(blank=True, max_length=10)),
                ("used_tokens", models.BigIntegerField(default=0)),
                ("used_microusd", models.BigIntegerField(default=0)),
                ("reserved_tokens", models.BigIntegerField(default=0)),
                ("reserved_microusd", models.BigIntegerField(default=0)),
                ("extra_tokens", models.BigIntegerField(default=0)),
                ("extra_microusd", models.BigIntegerField(default=0)),
                ("warned", models.JSONField(default=list)),
                ("changed", models.DateTimeField(auto_now=True)),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="agent_sessions.budget",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("call", models.CharField(max_length=200)),
                ("tokens", models.BigIntegerField(help_text="that the call may take")),
                ("microusd", models.BigIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "Waiting"),
                            ("granted", "Granted"),
                            ("refused", "Refused"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("decided", models.DateTimeField(null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="approvals",
                        to="agent_sessions.session",
                    ),
                ),
                (
                    "use",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="approvals",
                        to="agent_sessions.use",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.UniqueConstraint(
                fields=("team", "scope", "name", "period"), name="one_budget_per_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("tokens__gte", 0), ("microusd__gte", 0), _connector="OR"),
                name="budget_has_a_limit",
            ),
        ),
        migrations.AddIndex(
            model_name="reservation",
            index=models.Index(fields=["state", "expires"], name="reservation_expires"),
        ),
        migrations.AddConstraint(
            model_name="reservation",
            constraint=models.UniqueConstraint(
                fields=("session", "call"), name="one_reservation_per_call"
            ),
        ),
        migrations.AddConstraint(
            model_name="use",
            constraint=models.UniqueConstraint(
                fields=("budget", "key", "term"), name="one_use_per_key"
            ),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(fields=["state", "created"], name="approval_waiting"),
        ),
        migrations.AddConstraint(
            model_name="approval",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "waiting")), fields=("use",), name="one_approval_waits"
            ),
        ),
    ]
