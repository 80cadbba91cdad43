"""Erasures, retention and holds; the database lets erasure clear texts in rows that stay."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
import uuid
from django.db import migrations, models


CLEARED = {"agent_sessions_block": ("preview", "''"), "agent_sessions_message": ("extra", "NULL")}
"""The column of a table that may be cleared, and to what; no other update is accepted."""
SAID = "originals are insert-only"


def let_clear(apps: Any, editor: Any) -> None:
    """Replace the triggers that refuse every update."""
    postgres = editor.connection.vendor == "postgresql"
    for name, (column, empty) in CLEARED.items():
        model = apps.get_model("agent_sessions", name.rpartition("_")[2])
        others = [f.column for f in model._meta.concrete_fields if f.column != column]
        listed = ", ".join(f'"{one}"' for one in others)
        changed = f"NEW.{column} IS NOT NULL" if empty == "NULL" else f"NEW.{column} <> {empty}"
        editor.execute(f"DROP TRIGGER {name}_immutable" + (f" ON {name}" if postgres else ""))
        for trigger, columns, when in (
            (f"{name}_immutable", listed, ""),
            (f"{name}_cleared", column, f"WHEN ({changed})"),
        ):
            begin = f"CREATE TRIGGER {trigger} BEFORE UPDATE OF {columns} ON {name}"
            refuse = f"BEGIN SELECT RAISE(ABORT, '{SAID}'); END"
            if postgres:
                when = f"FOR EACH ROW {when}"
                refuse = "EXECUTE FUNCTION contextlab_refuse_update()"
            editor.execute(f"{begin} {when} {refuse}")


def note_clean(apps: Any, editor: Any) -> None:
    """On SQLite, note in a store without sessions that no page ever held any (`actions/erasure/
    remnants.py`)."""
    if editor.connection.vendor == "sqlite":
        if not apps.get_model("agent_sessions", "Session").objects.exists():
            editor.execute("PRAGMA user_version = 1")


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0055_sign_on_memberships"),
    ]

    operations = [
        migrations.CreateModel(
            name="Retention",
            fields=[
                (
                    "team",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="retention",
                        serialize=False,
                        to="agent_sessions.team",
                    ),
                ),
                ("content_days", models.PositiveIntegerField(null=True)),
                ("session_days", models.PositiveIntegerField(null=True)),
                ("changed", models.DateTimeField(auto_now=True)),
                ("looked", models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name="answer",
            name="session",
            field=models.UUIDField(help_text="the session that the response is about", null=True),
        ),
        migrations.AddField(
            model_name="session",
            name="content_erased",
            field=models.DateTimeField(
                help_text="when its content was erased; its figures stay", null=True
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="erasing",
            field=models.DateTimeField(help_text="when its erasure began", null=True),
        ),
        migrations.CreateModel(
            name="Erasure",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("session", "Session"),
                            ("task", "Task"),
                            ("metadata", "Metadata"),
                            ("text", "Text"),
                            ("member", "Member"),
                            ("team", "Team"),
                            ("retention", "Retention"),
                        ],
                        max_length=10,
                    ),
                ),
                (
                    "rule",
                    models.JSONField(
                        default=dict, help_text="what was named, hashed with the salt"
                    ),
                ),
                ("content_only", models.BooleanField(default=False)),
                (
                    "member",
                    models.BigIntegerField(help_text="user whose data is erased", null=True),
                ),
                ("via", models.CharField(max_length=8)),
                ("by", models.CharField(max_length=150)),
                ("reason", models.CharField(blank=True, max_length=300)),
                ("salt", models.CharField(max_length=32)),
                ("counts", models.JSONField(default=dict)),
                ("receipt", models.TextField(blank=True)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("finished", models.DateTimeField(null=True)),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="agent_sessions.job",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="erasures",
                        to="agent_sessions.team",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ErasedSession",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("session", models.UUIDField()),
                ("name", models.CharField(blank=True, max_length=64)),
                (
                    "named",
                    models.CharField(
                        help_text="the external id, hashed with the salt", max_length=64
                    ),
                ),
                ("gone", models.DateTimeField(null=True)),
                (
                    "team",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="agent_sessions.team",
                    ),
                ),
                (
                    "erasure",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to="agent_sessions.erasure",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ErasedBlob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("sha", models.CharField(max_length=64)),
                ("erased", models.BooleanField(default=False)),
                (
                    "erasure",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="blobs",
                        to="agent_sessions.erasure",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("session", "Session"), ("task", "Task"), ("team", "Team")],
                        max_length=7,
                    ),
                ),
                ("session", models.UUIDField(null=True)),
                ("task", models.CharField(blank=True, max_length=300)),
                ("reason", models.CharField(max_length=300)),
                ("by", models.CharField(max_length=150)),
                ("created", models.DateTimeField(auto_now_add=True)),
                ("released", models.DateTimeField(null=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="holds",
                        to="agent_sessions.team",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="erasure",
            index=models.Index(fields=["team", "-created"], name="erasure_newest"),
        ),
        migrations.AddIndex(
            model_name="erasedsession",
            index=models.Index(fields=["team", "name"], name="erased_name"),
        ),
        migrations.AddIndex(
            model_name="erasedsession",
            index=models.Index(fields=["session"], name="erased_session"),
        ),
        migrations.AddConstraint(
            model_name="erasedsession",
            constraint=models.UniqueConstraint(
                fields=("erasure", "session"), name="session_erased_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="erasedblob",
            constraint=models.UniqueConstraint(fields=("erasure", "sha"), name="blob_erased_once"),
        ),
        migrations.AddIndex(
            model_name="hold",
            index=models.Index(fields=["team", "released"], name="hold_in_force"),
        ),
        migrations.RunPython(let_clear, migrations.RunPython.noop),
        migrations.RunPython(note_clean, migrations.RunPython.noop),
    ]
