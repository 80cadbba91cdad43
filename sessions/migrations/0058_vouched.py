"""When single sign-on last gave a membership: keys lapse some time after."""

from django.db import migrations, models
from django.utils import timezone


def vouch(apps, _):
    given = apps.get_model('agent_sessions', 'Membership').objects.filter(by_sign_on=True)
    given.update(vouched=timezone.now())


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0057_visits'),
    ]

    operations = [
        migrations.AddField(
            model_name='membership',
            name='vouched',
            field=models.DateTimeField(help_text='when single sign-on last gave it; null if it does not', null=True),
        ),
        migrations.RunPython(vouch, migrations.RunPython.noop),
    ]
