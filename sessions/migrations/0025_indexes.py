"""Indexes that are the beginning of another one: a tenth of the disk."""

import django.db.models.deletion
from django.db import migrations, models


COVERED = {
    "agent_sessions_blob": "team_id",
    "agent_sessions_block": "session_id",
    "agent_sessions_edit": "revision_id",
    "agent_sessions_entry": "run_id",
    "agent_sessions_message": "session_id",
    "agent_sessions_modelcall": "session_id",
    "agent_sessions_replacement": "run_id",
    "agent_sessions_revision": "run_id",
    "agent_sessions_session": "team_id",
}
"""Columns that are the first of another index of their table."""


def drop(apps, schema_editor):
    """Drop indexes by their columns. AlterField would rebuild tables on SQLite, without the
    triggers that protect originals."""
    introspection = schema_editor.connection.introspection
    for table, column in COVERED.items():
        with schema_editor.connection.cursor() as cursor:
            found = introspection.get_constraints(cursor, table)
        for name, one in found.items():
            plain = one["index"] and not one["unique"] and not one["primary_key"]
            if plain and one["columns"] == [column] and name != "session_due":
                schema_editor.execute(f'DROP INDEX "{name}"')


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0024_job_losses'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    model_name='blob',
                    name='team',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blobs', to='agent_sessions.team'),
                ),
                migrations.AlterField(
                    model_name='block',
                    name='session',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='agent_sessions.session'),
                ),
                migrations.AlterField(
                    model_name='edit',
                    name='revision',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='edits', to='agent_sessions.revision'),
                ),
                migrations.AlterField(
                    model_name='entry',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='agent_sessions.run'),
                ),
                migrations.AlterField(
                    model_name='message',
                    name='session',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='agent_sessions.session'),
                ),
                migrations.AlterField(
                    model_name='modelcall',
                    name='session',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='calls', to='agent_sessions.session'),
                ),
                migrations.AlterField(
                    model_name='replacement',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='replacements', to='agent_sessions.run'),
                ),
                migrations.AlterField(
                    model_name='revision',
                    name='run',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='revisions', to='agent_sessions.run'),
                ),
                migrations.AlterField(
                    model_name='session',
                    name='team',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='agent_sessions.team'),
                ),
            ],
            database_operations=[migrations.RunPython(drop, migrations.RunPython.noop)],
        ),
        migrations.AddIndex(
            model_name='assessment',
            index=models.Index(fields=['-changed'], name='assessment_newest'),
        ),
    ]
