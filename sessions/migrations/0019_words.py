"""One word per concept: tables, columns and stored documents take the names the product uses."""

import hashlib
import json
import zlib

import django.db.models.deletion
from django.db import migrations, models

STEPS = {"served": "managed", "fresh": "uncached"}
"""Columns of the figures per step that a run keeps packed: what each was called, and is."""

FIGURES = {
    "in_place": "in_context",
    "tokens_sent_unmanaged": "tokens_sent_recorded",
    "cost_unmanaged_microusd": "cost_recorded_microusd",
    "dearest": "costliest",
}
POLICY = {"lifetime": "ttl"}
DOCUMENTS = (
    ("Run", "figures", {**FIGURES, "tokens_sent_recorded": "tokens_sent_reported"}),
    ("SimulationResult", "figures", FIGURES),
    ("TuningTrial", "figures", FIGURES),
    ("TuningTrial", "held", FIGURES),
    ("Artefact", "usage", {"fresh": "uncached"}),
    ("PolicyVersion", "document", POLICY),
    ("Revision", "parameters", POLICY),
    ("Session", "overrides", POLICY),
    ("TuningTrial", "document", POLICY),
    ("FactLedger", "sections", {"told": "covered"}),
    ("Gathering", "remembered", {"anchors": "notes"}),
)
"""Stored documents whose keys are renamed."""


def _renamed(value, names):
    """Rename keys at any depth of a JSON value."""
    if isinstance(value, dict):
        return {names.get(key, key): _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    return value


def _recoded(content):
    figures = _renamed(json.loads(content), STEPS)
    for card in (figures.get("figures") or figures)["causes"]:
        card["kind"] = "ttl" if card["kind"] == "lifetime" else card["kind"]
    return json.dumps(figures, separators=(",", ":")).encode()


def rename_values(apps, schema_editor):
    run = apps.get_model("agent_sessions", "Run")
    run.objects.filter(origin="served").update(origin="managed")
    for row in run.objects.only("columns", "tail").iterator(chunk_size=20):
        if row.columns:
            row.columns = zlib.compress(_recoded(zlib.decompress(row.columns)))
        if row.tail:
            row.tail = _recoded(bytes(row.tail))
        row.save(update_fields=["columns", "tail"])
    for model, field, names in DOCUMENTS:
        rows = apps.get_model("agent_sessions", model).objects
        for row in rows.only(field).iterator(chunk_size=100):
            before = getattr(row, field)
            if (now := _renamed(before, names)) != before:
                setattr(row, field, now)
                row.save(update_fields=[field])
    policies = apps.get_model("agent_sessions", "Policy").objects.all()
    policies.filter(preset=True, name="unmanaged").exclude(
        team__in=policies.filter(name="passthrough").values("team")
    ).update(name="passthrough")
    for version in apps.get_model("agent_sessions", "PolicyVersion").objects.iterator():
        if version.document.get("name") == "unmanaged" and version.policy.name == "passthrough":
            version.document["name"] = "passthrough"
        document = json.dumps(version.document, sort_keys=True).encode()
        version.digest = hashlib.sha256(document).hexdigest()
        version.save(update_fields=["document", "digest"])
    if schema_editor.connection.vendor == "postgresql":
        # What is checked at the end of the transaction would refuse the constraint below.
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")


class Migration(migrations.Migration):

    dependencies = [("agent_sessions", "0001_squashed_0018_break_causes")]

    operations = [
        migrations.RenameModel("ServedContext", "ManagedContext"),
        migrations.RenameIndex(
            "managedcontext", new_name="managed_at_step", old_name="served_at_step"
        ),
        migrations.AlterField(
            model_name="managedcontext",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="managed_contexts", to="agent_sessions.run",
            ),
        ),
        migrations.AlterField(
            model_name="managedcontext",
            name="tools",
            field=models.ForeignKey(
                help_text="the graph that selected its tools", null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="managed", to="agent_sessions.toolgraph",
            ),
        ),
        migrations.RemoveConstraint(model_name="anchor", name="anchor_once_per_board"),
        migrations.RenameModel("Anchor", "Note"),
        migrations.AlterField(
            model_name="note",
            name="board",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notes", to="agent_sessions.board",
            ),
        ),
        migrations.AlterField(
            model_name="note",
            name="session",
            field=models.ForeignKey(
                help_text="the session it was extracted from, or whose agent wrote it", null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="notes", to="agent_sessions.session",
            ),
        ),
        migrations.AlterField(
            model_name="note",
            name="share",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.SET_NULL,
                related_name="notes", to="agent_sessions.share",
            ),
        ),
        migrations.AddConstraint(
            model_name="note",
            constraint=models.UniqueConstraint(
                fields=("board", "key"), name="note_once_per_board"
            ),
        ),
        migrations.RemoveConstraint(model_name="run", name="one_served_run"),
        migrations.AlterField(
            model_name="run",
            name="origin",
            field=models.CharField(
                choices=[
                    ("recorded", "Recorded"), ("managed", "Managed"), ("simulated", "Simulated"),
                ],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="modelcall",
            name="context",
            field=models.CharField(
                blank=True, help_text="id of the managed context the agent says it sent",
                max_length=40,
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="estimate_us",
            field=models.PositiveBigIntegerField(
                help_text="managed: microseconds spent counting tokens", null=True
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="shaping_us",
            field=models.PositiveBigIntegerField(
                help_text="managed: microseconds of the rest of the fold's step", null=True
            ),
        ),
        migrations.AlterField(
            model_name="revision",
            name="summary_ms",
            field=models.PositiveBigIntegerField(
                help_text="managed: milliseconds to make the summary", null=True
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="fold",
            field=models.JSONField(
                default=dict,
                help_text="managed: state and failures of the strategies, window, hidden tokens",
            ),
        ),
        migrations.AlterField(
            model_name="run",
            name="taken",
            field=models.PositiveIntegerField(
                default=0, help_text="managed: originals that the fold has processed"
            ),
        ),
        migrations.RemoveConstraint(model_name="simulationresult", name="one_unmanaged_result"),
        migrations.AddConstraint(
            model_name="simulationresult",
            constraint=models.UniqueConstraint(
                condition=models.Q(version=None), fields=("simulation", "session"),
                name="one_recorded_result",
            ),
        ),
        migrations.RenameField("modelcall", "fresh", "uncached"),
        migrations.RenameField("session", "fresh_tokens", "uncached_tokens"),
        migrations.RenameField("assessment", "fresh_microusd", "uncached_microusd"),
        migrations.RenameField("assessment", "in_place", "in_context"),
        migrations.RunPython(rename_values, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(
                condition=models.Q(origin="managed"), fields=("session",), name="one_managed_run"
            ),
        ),
    ]
