"""On PostgreSQL, the names of the sessions that are there, and their index, while others write."""

from typing import Any

from django.db import migrations

SESSIONS, NAMES = "agent_sessions_session", "agent_sessions_sessionname"
INDEX = f"{NAMES}_grams"

AT_ONCE = 2_000
"""Sessions whose names are added in one transaction."""

# A session that is deleted meanwhile is left out, and one that its trigger has named stays so.
ADD = f"""
WITH listed AS (
    SELECT id, contextlab_named(team_id, title, external_id, agent, model) AS named
    FROM {SESSIONS} WHERE id > %s ORDER BY id LIMIT {AT_ONCE} FOR KEY SHARE
), added AS (
    INSERT INTO {NAMES} (session, named) SELECT id, named FROM listed ON CONFLICT DO NOTHING
)
SELECT max(id::text)::uuid FROM listed
"""


def fill(_: Any, editor: Any) -> None:
    """Add names and build the index. Safe to repeat after an interruption."""
    if editor.connection.vendor != "postgresql":
        return
    last = "00000000-0000-0000-0000-000000000000"
    with editor.connection.cursor() as cursor:
        while last is not None:
            cursor.execute(ADD, [last])
            (last,) = cursor.fetchone()
        cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        # Entries that wait in a list are all read by every search.
        cursor.execute(
            f"CREATE INDEX CONCURRENTLY {INDEX} ON {NAMES}"
            " USING gin (contextlab_grams(named)) WITH (fastupdate = off)"
        )
        cursor.execute(f"ANALYZE {NAMES}")


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("agent_sessions", "0074_session_names"),
    ]

    operations = [migrations.RunPython(fill)]
