"""Which tools a session's agent may use when, and which steps do again what failed."""

from __future__ import annotations

from django.db import models


class ToolGraph(models.Model):
    """What a session's tools need, as it was set; the newest one holds, none is ever changed.

    It holds for uses in messages after `seq`, from step `step` on. `fold` is worked out of the
    messages up to the block before position `taken`, and can be again: tools used, tools enabled,
    states, each with its step (`compaction/tools/graph.py`, Enabling).
    """

    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="tool_graphs"
    )
    number = models.PositiveIntegerField()
    document = models.JSONField()
    seq = models.PositiveIntegerField(default=0)
    step = models.PositiveIntegerField(default=1)
    taken = models.PositiveIntegerField(default=0)
    fold = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="tool_graph_once")
        ]

    def __str__(self) -> str:
        return f"tools {self.number} from S{self.step}"


class Retry(models.Model):
    """A model response that does a failed step again: it is of step `step`, that was `of_step`."""

    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="retries"
    )
    message = models.OneToOneField(
        "agent_sessions.Message", on_delete=models.CASCADE, related_name="retry"
    )
    step = models.PositiveIntegerField()
    of_step = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["session", "step"], name="retry_at_step")]

    def __str__(self) -> str:
        return f"S{self.step} again S{self.of_step}"
