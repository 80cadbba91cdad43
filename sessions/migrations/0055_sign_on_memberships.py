"""Which memberships single sign-on gave, and ends."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0054_audit_chain'),
    ]

    operations = [
        migrations.AddField(
            model_name='membership',
            name='by_sign_on',
            field=models.BooleanField(default=False, help_text='given by single sign-on, which changes and ends it'),
        ),
    ]
