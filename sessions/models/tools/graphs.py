"""Tool graphs of sessions, and retries of failed steps."""

from __future__ import annotations

from django.db import models


class ToolGraph(models.Model):
    """The tool requirements of a session as set once; the newest applies, none is ever changed.

    It applies to tool use in messages after `seq`, from step `step` on. `fold` is derived from the
    messages up to the block before position `taken`, and can be rebuilt: tools used, tools enabled,
    states, each with its step (`compaction/tools/graph.py`, Enabling). If a policy made it from the
    habits of the agent's sessions, `learned_from` is their number and `habits` what they do
    (`compaction/tools/habits.py`).
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
    learned_from = models.PositiveIntegerField(
        null=True, help_text="sessions whose habits left tools out; null: set by request"
    )
    habits = models.JSONField(default=dict)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="tool_graph_once")
        ]

    def __str__(self) -> str:
        return f"tools {self.number} from step {self.step}"


class Retry(models.Model):
    """A model response that retries a failed step: it belongs to step `step` and retries
    `of_step`."""

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
        return f"step {self.step} retries step {self.of_step}"
