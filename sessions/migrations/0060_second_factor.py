"""Teams that require a second factor of their members."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0059_email_addresses'),
        ('mfa', '0003_authenticator_type_uniq'),
    ]

    operations = [
        migrations.AddField(
            model_name='team',
            name='require_second_factor',
            field=models.BooleanField(default=False, help_text='members without one set it up before anything else'),
        ),
    ]
