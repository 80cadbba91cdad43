"""Processes that were seen, and how much teams store."""

import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0060_second_factor'),
    ]

    operations = [
        migrations.CreateModel(
            name='SeenProcess',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('web', 'Web'), ('worker', 'Worker')], max_length=6)),
                ('host', models.CharField(max_length=100)),
                ('pid', models.PositiveIntegerField()),
                ('version', models.CharField(max_length=40)),
                ('started', models.DateTimeField()),
                ('seen', models.DateTimeField()),
                ('stopped', models.BooleanField(default=False, help_text='whether it ended by itself')),
            ],
        ),
        migrations.CreateModel(
            name='StoredBytes',
            fields=[
                ('team', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='stored', serialize=False, to='agent_sessions.team')),
                ('bytes', models.BigIntegerField(default=0)),
                ('blobs', models.BigIntegerField(default=0)),
                ('until', models.BigIntegerField(default=0)),
            ],
        ),
    ]
