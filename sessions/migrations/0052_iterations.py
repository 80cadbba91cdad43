"""The requests behind a response: what several of them reported was read as one prompt."""

from __future__ import annotations

import json
from typing import Any

from django.db import migrations, models

from compaction.context.iterations import packed
from sessions.importers.reported import anthropic_usage


def read_again(apps: Any, _: Any) -> None:
    """Read the usage of stored responses that took several requests again, from the provider's own
    object; the next measurement of their session prices it."""
    calls = apps.get_model("agent_sessions", "ModelCall").objects
    stored = calls.filter(usage_raw__contains='"iterations"').values_list("pk", "usage_raw")
    for key, raw in stored.iterator(chunk_size=500):
        if raw.count('"input_tokens"') < 3:  # one for the whole, one for each request
            continue
        usage = anthropic_usage(json.loads(raw).get("raw")).usage
        if usage is not None and usage.iterations:
            calls.filter(pk=key).update(
                uncached=usage.uncached,
                cache_read=usage.cache_read,
                cache_write_5m=usage.cache_write_5m,
                cache_write_1h=usage.cache_write_1h,
                output=usage.output,
                reasoning=usage.reasoning,
                iterations=packed(usage),
            )


class Migration(migrations.Migration):
    """Add the column and fill it."""

    dependencies = [("agent_sessions", "0051_counted_facets")]

    operations = [
        migrations.AddField(
            "modelcall",
            "iterations",
            models.TextField(
                null=True, help_text="requests behind the response if several, JSON rows"
            ),
        ),
        migrations.RunPython(read_again, migrations.RunPython.noop, elidable=True),
    ]
