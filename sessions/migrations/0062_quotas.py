"""What teams may use, and what they used."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0061_operations'),
    ]

    operations = [
        migrations.CreateModel(
            name='Quota',
            fields=[
                ('team', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='quota', serialize=False, to='agent_sessions.team')),
                ('storage_bytes', models.BigIntegerField(help_text='content as stored', null=True)),
                ('requests_minute', models.BigIntegerField(help_text='API requests with a key', null=True)),
                ('requests_day', models.BigIntegerField(help_text='API requests with a key', null=True)),
                ('tokens_month', models.BigIntegerField(help_text='tokens of model calls that agents report', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='QuotaUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period', models.CharField(max_length=6)),
                ('start', models.DateTimeField()),
                ('requests', models.BigIntegerField(default=0)),
                ('tokens', models.BigIntegerField(default=0)),
                ('team', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agent_sessions.team')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('team', 'period', 'start'), name='one_use_per_period')],
            },
        ),
    ]
