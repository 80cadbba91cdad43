from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0012_tools")]

    operations: list[migrations.operations.base.Operation] = []
