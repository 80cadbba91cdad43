"""Kept sums of days, and an index for each order of the session list."""

import django.db.models.deletion
import sessions.models.web.happened
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0020_login_addresses'),
    ]

    operations = [
        migrations.CreateModel(
            name='DayTotals',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.PositiveIntegerField()),
                ('sums', models.TextField()),
                ('hours', models.TextField()),
                ('facets', models.TextField()),
                ('fullest', models.TextField()),
                ('costliest', models.TextField()),
            ],
        ),
        migrations.AddField(
            model_name='session',
            name='tallied_version',
            field=models.BigIntegerField(db_default=-1, default=-1, help_text='the version that is in the kept sums of its day'),
        ),
        migrations.AddField(
            model_name='session',
            name='tally_day',
            field=models.PositiveIntegerField(help_text='the day in whose kept sums it is, from the epoch', null=True),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(models.F('team'), models.OrderBy(sessions.models.web.happened.OrElse(models.F('ended_at'), 0), descending=True), models.OrderBy(models.F('id'), descending=True), name='session_by_newest'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(models.F('team'), models.OrderBy(sessions.models.web.happened.Fill('peak_tokens', 'window'), descending=True), models.OrderBy(models.F('id'), descending=True), name='session_by_peak'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(models.F('team'), models.OrderBy(sessions.models.web.happened.OrElse(models.F('cost_microusd'), -1), descending=True), models.OrderBy(models.F('id'), descending=True), name='session_by_cost'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(models.F('team'), models.OrderBy(sessions.models.web.happened.OrElse(models.F('step_count'), 0), descending=True), models.OrderBy(models.F('id'), descending=True), name='session_by_steps'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('ended_at', None)), fields=['team', 'created'], name='session_untimed'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('version__gt', models.F('tallied_version'))), fields=['team'], name='session_due'),
        ),
        migrations.AddField(
            model_name='daytotals',
            name='team',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='agent_sessions.team'),
        ),
        migrations.AddConstraint(
            model_name='daytotals',
            constraint=models.UniqueConstraint(fields=('team', 'day'), name='day_once_per_team'),
        ),
    ]
