"""Object storage: which object holds a blob's bytes, and objects that are to be removed."""

from django.db import migrations, models

_COLUMNS = (
    ("object_name", "varchar(200)", "''"),
    # As Django makes it: nothing is written to a table that may hold gigabytes.
    ("object_bytes", "integer", "0"),
)


def add_columns(apps, editor):
    """Add columns with a default, without Django's copy of the table on SQLite."""
    for name, type_, default in _COLUMNS:
        check = f' CHECK ("{name}" >= 0)' if type_ == "integer" else ""
        if editor.connection.vendor == "sqlite":
            type_ += " unsigned" if check else ""
        editor.execute(
            f'ALTER TABLE agent_sessions_blob ADD COLUMN "{name}" {type_}'
            f" DEFAULT {default} NOT NULL{check}"
        )


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0063_masking'),
    ]

    operations = [
        migrations.CreateModel(
            name='RemovedObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
            ],
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(add_columns, elidable=False)],
            state_operations=[
                migrations.AddField(
                    model_name='blob',
                    name='object_name',
                    field=models.CharField(blank=True, db_default='', default='', max_length=200),
                ),
                migrations.AddField(
                    model_name='blob',
                    name='object_bytes',
                    field=models.PositiveIntegerField(db_default=0, default=0),
                ),
            ],
        ),
    ]
