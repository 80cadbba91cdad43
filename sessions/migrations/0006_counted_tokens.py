from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agent_sessions', '0005_recited'),
    ]

    operations = [
        migrations.AddField(
            model_name='session',
            name='counted_tokens',
            field=models.PositiveIntegerField(help_text='the same as we count it, before what reported usage corrects', null=True),
        ),
    ]
