"""An index of the entries that revisions opened: previews count them up to a place."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agent_sessions", "0026_tallied_compacted"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="entry",
            index=models.Index(
                condition=models.Q(("opened_by__isnull", False)),
                fields=["run", "position"],
                name="entry_opened",
            ),
        ),
    ]
