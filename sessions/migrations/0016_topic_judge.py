from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agent_sessions", "0015_quality")]

    operations = [
        migrations.AlterField(
            model_name="artefact",
            name="kind",
            field=models.CharField(
                choices=[("summary", "Summary"), ("outline", "Outline"), ("topic", "Topic")],
                max_length=10,
            ),
        ),
        migrations.AlterField(
            model_name="artefact",
            name="maker",
            field=models.CharField(
                help_text="extractive, anthropic, tree-sitter, embedded, …", max_length=60
            ),
        ),
    ]
