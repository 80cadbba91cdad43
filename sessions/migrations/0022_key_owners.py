"""Keys have an owner and may expire; existing keys have neither."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("agent_sessions", "0021_day_totals"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="key", name="expires", field=models.DateTimeField(null=True)
        ),
        migrations.AddField(
            model_name="key",
            name="owner",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="keys",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
