"""The audit log is numbered and hash-chained, and refuses deletes.

Entries of older versions are chained in the order in which they were written. The functions are
copies of `actions/accounts/chain.py` as of this migration.
"""

import hashlib
import json
import secrets
from datetime import timezone

import django.db.models.deletion
from django.db import migrations, models

TABLE = "agent_sessions_auditentry"
SAID = "the audit log is append-only"
FIXED = ("id", "team_id", "number", "at", "via", "action", "previous", "hash")
PARTS = {
    "actor": ("actor", "actor_id", "ip"),
    "named": ("named", "named_id"),
    "detail": ("detail",),
}
ERASED = {
    "actor": "substr(NEW.actor, 1, 7) = 'erased-' AND NEW.actor_id IS NULL AND NEW.ip = ''",
    "named": "substr(NEW.named, 1, 7) = 'erased-' AND NEW.named_id IS NULL",
    "detail": "length(NEW.detail_salt) = 64",
}


def same(column):
    if column in ("actor_id", "named_id"):
        return f"coalesce(OLD.{column}, 0) = coalesce(NEW.{column}, 0)"
    return f"OLD.{column} = NEW.{column}"


def accepted():
    """When an update only replaces names by a pseudonym, and keeps the digest of what they were."""
    parts = []
    for part, columns in PARTS.items():
        salt = f"{part}_salt"
        untouched = " AND ".join(same(one) for one in (*columns, salt))
        sealed = f"length(OLD.{salt}) = 32 AND length(NEW.{salt}) = 64"
        if part == "detail":  # it may name several people
            sealed = f"({sealed} OR {same(salt)})"
        parts.append(f"(({untouched}) OR ({sealed} AND {ERASED[part]}))")
    return " AND ".join([*map(same, FIXED), *parts])


def let_change(apps, editor):
    on = f" ON {TABLE}" if editor.connection.vendor == "postgresql" else ""
    editor.execute(f"DROP TRIGGER IF EXISTS {TABLE}_appends{on}", params=None)


def plain(value):
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def canonical(value):
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":")).encode()


def digest(salt, *values):
    return hashlib.sha256(salt.encode() + canonical(values)).hexdigest()


def chain(apps, editor):
    entries = apps.get_model("agent_sessions", "AuditEntry").objects
    heads = {}
    for pk in list(entries.order_by("team_id", "pk").values_list("pk", flat=True)):
        row = entries.get(pk=pk)
        row.number, row.previous = heads.get(row.team_id, (1, ""))
        row.actor_salt, row.named_salt, row.detail_salt = (secrets.token_hex(16) for _ in range(3))
        covered = [
            1, row.previous, str(row.team_id), row.number,
            row.at.astimezone(timezone.utc).isoformat(timespec="microseconds"), row.via, row.action,
            digest(row.actor_salt, row.actor, row.actor_id, row.ip),
            digest(row.named_salt, row.named, row.named_id),
            digest(row.detail_salt, row.detail),
        ]
        row.hash = hashlib.sha256(canonical(covered)).hexdigest()
        row.save(
            update_fields=["number", "previous", "hash", "actor_salt", "named_salt", "detail_salt"]
        )
        heads[row.team_id] = (row.number + 1, row.hash)


def guard(apps, editor):
    if editor.connection.vendor == "postgresql":
        refuse = "EXECUTE FUNCTION contextlab_refuse_audit_update()"
        each = "FOR EACH ROW "
        editor.execute(
            f"CREATE TRIGGER {TABLE}_stays BEFORE TRUNCATE ON {TABLE} FOR EACH STATEMENT {refuse}",
            params=None,
        )
    else:
        refuse, each = f"BEGIN SELECT RAISE(ABORT, '{SAID}'); END", ""
    for name, when in (
        ("appends", f"UPDATE ON {TABLE} {each}WHEN (NOT ({accepted()}))"),
        ("keeps", f"DELETE ON {TABLE} {each}"),
    ):
        editor.execute(f"CREATE TRIGGER {TABLE}_{name} BEFORE {when} {refuse}", params=None)


SALTS = ("actor_salt", "named_salt", "detail_salt")
HASHES = {"previous": "hash of the entry before; empty at first", "hash": ""}


def text(**more):
    return models.CharField(max_length=64, **more)


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0053_lost_facts"),
    ]

    operations = [
        migrations.RunPython(let_change, migrations.RunPython.noop),
        migrations.AlterField(
            model_name="auditentry",
            name="at",
            field=models.DateTimeField(),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="team",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="audit",
                to="agent_sessions.team",
            ),
        ),
        migrations.AddField("auditentry", "number", models.PositiveBigIntegerField(null=True)),
        migrations.AddField("auditentry", "named_id", models.BigIntegerField(null=True)),
        *[migrations.AddField("auditentry", name, text(null=True)) for name in (*SALTS, *HASHES)],
        migrations.RunPython(chain, migrations.RunPython.noop),
        migrations.AlterField("auditentry", "number", models.PositiveBigIntegerField()),
        *[migrations.AlterField("auditentry", name, text()) for name in SALTS],
        *[
            migrations.AlterField("auditentry", name, text(**({"help_text": help} if help else {})))
            for name, help in HASHES.items()
        ],
        migrations.AddConstraint(
            model_name="auditentry",
            constraint=models.UniqueConstraint(fields=("team", "number"), name="audit_number"),
        ),
        migrations.RunPython(guard, migrations.RunPython.noop),
    ]
