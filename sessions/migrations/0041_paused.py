from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0040_ingestion'),
    ]

    operations = [
        migrations.AddField(
            model_name='session',
            name='paused',
            field=models.JSONField(help_text='who paused it, why and since when; null while it may go on', null=True),
        ),
    ]
