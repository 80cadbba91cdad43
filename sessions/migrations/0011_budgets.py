from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0010_boards")]

    operations: list[migrations.operations.base.Operation] = []
