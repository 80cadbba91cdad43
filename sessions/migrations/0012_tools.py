from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0011_budgets")]

    operations: list[migrations.operations.base.Operation] = []
