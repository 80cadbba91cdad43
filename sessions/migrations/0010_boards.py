import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0009_login_failures")]

    operations = [
        migrations.CreateModel(
            name="Opening",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="opening",
                        serialize=False,
                        to="agent_sessions.session",
                    ),
                ),
                (
                    "wanted",
                    models.CharField(
                        choices=[("none", "Nothing"), ("board", "Board"), ("project", "Project")],
                        default="none",
                        max_length=8,
                    ),
                ),
                ("project", models.CharField(blank=True, max_length=300)),
                ("sha", models.CharField(blank=True, max_length=64)),
                (
                    "tokens",
                    models.PositiveIntegerField(default=0, help_text="in the session's counting"),
                ),
                ("fixed", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="servedcontext",
            name="knowledge",
            field=models.CharField(
                blank=True,
                default="",
                help_text="blob of what others shared, recited behind that; part of `recited`",
                max_length=64,
            ),
        ),
        migrations.CreateModel(
            name="Board",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("task", "Task"), ("session", "Session"), ("project", "Project")],
                        max_length=8,
                    ),
                ),
                ("name", models.CharField(max_length=300)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("changed", models.DateTimeField(auto_now=True)),
                (
                    "session",
                    models.ForeignKey(
                        help_text="of a session's own board",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="boards",
                        to="agent_sessions.session",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="boards",
                        to="agent_sessions.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Gathering",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="gathering",
                        serialize=False,
                        to="agent_sessions.session",
                    ),
                ),
                ("blocks", models.PositiveIntegerField(default=0)),
                ("remembered", models.JSONField(default=dict)),
                (
                    "over",
                    models.BooleanField(default=False, help_text="its end is on the board, too"),
                ),
                (
                    "board",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="agent_sessions.board",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Share",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("number", models.PositiveIntegerField()),
                (
                    "cause",
                    models.CharField(
                        choices=[
                            ("task_done", "Task Done"),
                            ("compaction", "Compaction"),
                            ("by_hand", "By Hand"),
                        ],
                        max_length=10,
                    ),
                ),
                ("agent", models.CharField(blank=True, max_length=120)),
                ("task", models.CharField(blank=True, max_length=300)),
                ("step", models.PositiveIntegerField(default=0)),
                ("summary", models.TextField(blank=True)),
                ("board", models.TextField(blank=True, help_text="as XML")),
                ("refs", models.JSONField(default=list)),
                ("files", models.JSONField(default=dict)),
                ("masked", models.JSONField(default=dict, help_text="secrets masked, by kind")),
                ("sent", models.DateTimeField(null=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares",
                        to="agent_sessions.session",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="shares",
                        to="agent_sessions.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="agent_sessions.session",
                    ),
                ),
                (
                    "share",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="agent_sessions.share",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Anchor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("kind", models.CharField(max_length=10)),
                ("text", models.TextField()),
                ("agent", models.CharField(blank=True, max_length=120)),
                ("task", models.CharField(blank=True, max_length=300)),
                ("at", models.BigIntegerField(help_text="ms since the epoch", null=True)),
                (
                    "by",
                    models.CharField(
                        choices=[
                            ("code", "Code"),
                            ("agent", "Agent"),
                            ("person", "Person"),
                            ("share", "Share"),
                        ],
                        max_length=8,
                    ),
                ),
                ("message", models.PositiveIntegerField(null=True)),
                ("untrusted", models.BooleanField(default=False)),
                ("files", models.JSONField(default=dict)),
                ("stale", models.CharField(blank=True, max_length=300)),
                ("evidence", models.JSONField(default=dict)),
                (
                    "removed",
                    models.DateTimeField(
                        help_text="by people: code that sees it again leaves it away", null=True
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        help_text="that it was read from, or whose agent put it there",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="anchors",
                        to="agent_sessions.session",
                    ),
                ),
                (
                    "board",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="anchors",
                        to="agent_sessions.board",
                    ),
                ),
                (
                    "share",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="anchors",
                        to="agent_sessions.share",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("agent", "Agent"), ("task", "Task"), ("team", "Team")],
                        max_length=5,
                    ),
                ),
                (
                    "value",
                    models.CharField(
                        blank=True, help_text="agent or task; none for team", max_length=300
                    ),
                ),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscriptions",
                        to="agent_sessions.session",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="board",
            index=models.Index(fields=["team", "-changed"], name="board_newest"),
        ),
        migrations.AddConstraint(
            model_name="board",
            constraint=models.UniqueConstraint(
                fields=("team", "kind", "name"), name="board_once_per_team"
            ),
        ),
        migrations.AddIndex(
            model_name="share",
            index=models.Index(fields=["team", "-created"], name="share_newest"),
        ),
        migrations.AddIndex(
            model_name="share",
            index=models.Index(fields=["team", "sent"], name="share_to_send"),
        ),
        migrations.AddConstraint(
            model_name="share",
            constraint=models.UniqueConstraint(
                fields=("session", "key"), name="share_once_per_session"
            ),
        ),
        migrations.AddConstraint(
            model_name="share",
            constraint=models.UniqueConstraint(
                fields=("session", "number"), name="share_number_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="delivery",
            constraint=models.UniqueConstraint(fields=("share", "session"), name="delivered_once"),
        ),
        migrations.AddConstraint(
            model_name="anchor",
            constraint=models.UniqueConstraint(
                fields=("board", "key"), name="anchor_once_per_board"
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=models.UniqueConstraint(
                fields=("session", "kind", "value"), name="subscription_once_per_session"
            ),
        ),
    ]
