"""Names of sessions, by which these are found; triggers keep them."""

from typing import Any

from django.db import migrations, models

SESSIONS, NAMES = "agent_sessions_session", "agent_sessions_sessionname"
COLUMNS = "team_id, title, external_id, agent, model"

GRAMS = "agent_sessions_namegrams"


def named(row: str) -> str:
    """What a session can be found by, in SQL of SQLite; later migrations that make `SESSIONS`
    again must make the triggers again."""
    marks = "".join(f"'§' || substr({row}team_id, {at}, 2) || char(10) || " for at in (1, 3, 5))
    names = " || char(10) || ".join(f"{row}{one}" for one in ("title", "external_id", "agent", "model"))
    return marks + names


FORGET = f"INSERT INTO {GRAMS} ({GRAMS}, rowid, named) VALUES ('delete', OLD.id, OLD.named);"
ADD = f"INSERT INTO {GRAMS} (rowid, named) VALUES (NEW.id, NEW.named);"

SQLITE = [
    f"CREATE VIRTUAL TABLE {GRAMS} USING fts5"
    "(named, tokenize='trigram', content='', detail=none, columnsize=0)",
    f"CREATE TRIGGER {NAMES}_added AFTER INSERT ON {NAMES} BEGIN {ADD} END",
    f"CREATE TRIGGER {NAMES}_changed AFTER UPDATE OF named ON {NAMES} BEGIN {FORGET} {ADD} END",
    f"CREATE TRIGGER {NAMES}_removed AFTER DELETE ON {NAMES} BEGIN {FORGET} END",
    f"CREATE TRIGGER {SESSIONS}_named AFTER INSERT ON {SESSIONS} BEGIN"
    f" INSERT INTO {NAMES} (session, named) VALUES (NEW.id, {named('NEW.')}); END",
    f"CREATE TRIGGER {SESSIONS}_renamed AFTER UPDATE OF {COLUMNS} ON {SESSIONS}"
    f" WHEN {named('NEW.')} <> {named('OLD.')} BEGIN"
    f" UPDATE {NAMES} SET named = {named('NEW.')} WHERE session = NEW.id; END",
    f"CREATE TRIGGER {SESSIONS}_unnamed AFTER DELETE ON {SESSIONS} BEGIN"
    f" DELETE FROM {NAMES} WHERE session = OLD.id; END",
    f"INSERT INTO {NAMES} (session, named) SELECT id, {named('')} FROM {SESSIONS} ORDER BY created",
]

# The rows of sessions that are there follow in the next migration, while others write.
POSTGRESQL = [
    """CREATE FUNCTION contextlab_grams(given text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
    SELECT array_agg(substr(given, at, size))
    FROM generate_series(2, 3) size, generate_series(1, length(given) + 1 - size) at $$""",
    """CREATE FUNCTION contextlab_named(team uuid, title text, id text, agent text, model text)
    RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT upper(regexp_replace(team::text, '^(..)(..)(..).*', E'§\\\\1\\n§\\\\2\\n§\\\\3\\n')
        || title || E'\\n' || id || E'\\n' || agent || E'\\n' || model) $$""",
    f"""CREATE FUNCTION contextlab_name() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'DELETE' THEN
        DELETE FROM {NAMES} WHERE session = OLD.id;
    ELSE
        INSERT INTO {NAMES} (session, named)
        VALUES (NEW.id, contextlab_named(NEW.team_id, NEW.title, NEW.external_id, NEW.agent, NEW.model))
        ON CONFLICT (session) DO UPDATE SET named = EXCLUDED.named;
    END IF;
    RETURN NULL; END $$""",
    f"CREATE TRIGGER {SESSIONS}_named AFTER INSERT OR DELETE ON {SESSIONS}"
    " FOR EACH ROW EXECUTE FUNCTION contextlab_name()",
    f"CREATE TRIGGER {SESSIONS}_renamed AFTER UPDATE OF {COLUMNS} ON {SESSIONS} FOR EACH ROW WHEN"
    " ((NEW.title, NEW.external_id, NEW.agent, NEW.model, NEW.team_id) IS DISTINCT FROM"
    " (OLD.title, OLD.external_id, OLD.agent, OLD.model, OLD.team_id))"
    " EXECUTE FUNCTION contextlab_name()",
]


def create(_: Any, editor: Any) -> None:
    """Create triggers, and what finds names."""
    for statement in {"sqlite": SQLITE, "postgresql": POSTGRESQL}[editor.connection.vendor]:
        editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0073_listed_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="SessionName",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("session", models.UUIDField(unique=True)),
                ("named", models.TextField()),
            ],
        ),
        migrations.RunPython(create),
    ]
