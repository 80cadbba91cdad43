"""Sign-in by allauth: counts of attempts in Django's cache, and email addresses in its table."""

from django.conf import settings
from django.db import migrations, models


def add_addresses(apps, _):
    """Existing addresses are in use, and not confirmed."""
    addresses = apps.get_model('account', 'EmailAddress').objects
    people = apps.get_model('auth', 'User').objects.exclude(email='')
    for pk, email in people.values_list('pk', 'email').iterator(2000):
        if not addresses.filter(user_id=pk).exists():
            addresses.create(user_id=pk, email=email.lower(), primary=True, verified=False)


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0058_vouched'),
        ('account', '0009_emailaddress_unique_primary_email'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Attempts',
            fields=[
                ('cache_key', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('value', models.TextField()),
                ('expires', models.DateTimeField(db_index=True)),
            ],
            options={
                'verbose_name_plural': 'attempts',
            },
        ),
        migrations.DeleteModel(
            name='LoginFailure',
        ),
        migrations.RunPython(add_addresses, migrations.RunPython.noop),
    ]
