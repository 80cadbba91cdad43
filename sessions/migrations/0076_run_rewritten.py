"""Runs whose last steps are written again differ from what a page has of them."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0075_session_grams'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='rewritten',
            field=models.PositiveIntegerField(help_text='how often its last steps were taken back and written again', null=True),
        ),
    ]
