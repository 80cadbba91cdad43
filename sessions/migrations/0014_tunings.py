from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0013_session_overrides")]

    operations: list[migrations.operations.base.Operation] = []
