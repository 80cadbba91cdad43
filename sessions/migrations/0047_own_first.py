"""The newest sessions are listed before the demo's."""

from django.db import migrations, models
from sessions.models.web.happened import OrElse, OwnFirst

PARTIAL = {
    "session_due": models.Q(version__gt=models.F("tallied_version")),
    "session_demo": models.Q(demo=True),
    "session_unindexed": models.Q(block_count__gt=models.F("indexed_blocks")),
}


class Migration(migrations.Migration):

    dependencies = [
        ("agent_sessions", "0046_call_by_id"),
    ]

    operations = [
        migrations.RemoveIndex("session", "session_by_newest"),
        migrations.AddIndex(
            "session",
            models.Index(
                models.F("team"),
                models.OrderBy(OrElse(models.F("ended_at"), 0), descending=True),
                name="session_ended",
            ),
        ),
        migrations.AddIndex(
            "session",
            models.Index(
                models.F("team"),
                models.OrderBy(OwnFirst("ended_at", "demo"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="session_by_newest",
            ),
        ),
        # Of indexes that cost the same, SQLite takes the one made last: the small ones.
        *(migrations.RemoveIndex("session", name) for name in PARTIAL),
        *(
            migrations.AddIndex("session", models.Index(fields=["team"], condition=rows, name=name))
            for name, rows in PARTIAL.items()
        ),
    ]
