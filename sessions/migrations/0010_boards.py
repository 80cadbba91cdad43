from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0009_login_failures")]

    operations: list[migrations.operations.base.Operation] = []
