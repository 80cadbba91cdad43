"""Failed logins count for a name together with their source: an address or a known browser."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("agent_sessions", "0022_key_owners")]

    operations = [
        migrations.RemoveIndex(model_name="loginfailure", name="login_failures_from"),
        migrations.RenameField(model_name="loginfailure", old_name="ip", new_name="source"),
        migrations.AddIndex(
            model_name="loginfailure",
            index=models.Index(fields=["source", "at"], name="login_failures_from"),
        ),
    ]
