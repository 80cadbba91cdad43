"""An index of block texts, and searches that teams keep."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

TABLE = "agent_sessions_blockwords"

# As in `models/search/text_index.py`, which a later migration may change.
CREATE = {
    "sqlite": [
        f"CREATE VIRTUAL TABLE {TABLE} USING fts5"
        "(words, tokenize='ascii', content='', detail=none, columnsize=0)"
    ],
    "postgresql": [
        f"CREATE TABLE {TABLE} (block_id bigint PRIMARY KEY, words tsvector NOT NULL)",
        f"CREATE INDEX {TABLE}_words ON {TABLE} USING gin (words)",
    ],
}


def create(_: Any, editor: Any) -> None:
    """Create the index, empty: a job fills it."""
    for statement in CREATE[editor.connection.vendor]:
        editor.execute(statement)


def drop(_: Any, editor: Any) -> None:
    """Drop the index."""
    editor.execute(f"DROP TABLE {TABLE}")


class Migration(migrations.Migration):
    """Add the index, how far each session is in it, and saved searches."""

    dependencies = [("agent_sessions", "0031_sent_recitations")]

    operations = [
        migrations.RunPython(create, drop),
        migrations.AddField(
            "session",
            "indexed_blocks",
            models.PositiveIntegerField(
                db_default=0, default=0, help_text="blocks that search can find"
            ),
        ),
        migrations.AddIndex(
            "session",
            models.Index(
                condition=models.Q(("block_count__gt", models.F("indexed_blocks"))),
                fields=["team"],
                name="session_unindexed",
            ),
        ),
        migrations.CreateModel(
            name="SavedSearch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("query", models.CharField(help_text="query string of the page", max_length=2000)),
                ("created", models.DateTimeField(auto_now_add=True)),
                (
                    "team",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="saved_searches",
                        to="agent_sessions.team",
                        db_index=False,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("team", "name"), name="search_name_once_per_team"
                    )
                ]
            },
        ),
    ]
