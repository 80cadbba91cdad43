"""Recorded messages, their blocks, and model calls."""

from __future__ import annotations

from django.db import models

from sessions.models.record.sessions import Session
from sessions.models.web.shown import ShownChars, ShownCut, ShownText


class Message(models.Model):
    """One message, immutable. `seq` is gapless from 1 within its session."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    seq = models.PositiveIntegerField()
    key = models.CharField(max_length=200, null=True, help_text="the sender's own id")  # noqa: DJ001
    digest = models.CharField(max_length=64, help_text="of role, call and block hashes")
    role = models.CharField(max_length=12)
    call = models.CharField(max_length=200, blank=True, help_text="model response")
    born = models.PositiveIntegerField(help_text="first step whose context contains it")
    turn = models.PositiveIntegerField()
    human = models.BooleanField(default=False)
    late = models.BooleanField(default=False)
    at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    line = models.PositiveIntegerField(default=0, help_text="line in the imported file")
    # Nullable without default: otherwise SQLite would rebuild the table and lose its triggers.
    extra = ShownText(null=True, help_text="unknown fields from the sender, JSON")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "seq"], name="seq_once_per_session"),
            models.UniqueConstraint(fields=["session", "key"], name="key_once_per_session"),
        ]

    def __str__(self) -> str:
        return f"#{self.seq} {self.role}"


class Block(models.Model):
    """One content block of a message, immutable. Its bytes are the team's blob `sha`.

    It is in the context from step `born` on in every run, unless that run has entries for it that
    say otherwise. `tokens` are o200k tokens, counted once.
    """

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="blocks", db_index=False
    )
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="blocks")
    index = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    born = models.PositiveIntegerField()
    type = models.CharField(max_length=12)
    kind = models.CharField(max_length=10)
    tool = models.CharField(max_length=120, blank=True)
    tool_call = models.CharField(max_length=200, blank=True)
    file_path = ShownChars(max_length=600, blank=True)
    file_action = models.CharField(max_length=8, blank=True)
    file_start = models.PositiveIntegerField(null=True)
    file_end = models.PositiveIntegerField(null=True)
    error = models.BooleanField(default=False)
    tokens = models.PositiveIntegerField()
    estimated = models.BooleanField(default=False, help_text="too large to count exactly")
    chars = models.PositiveIntegerField()
    bytes = models.PositiveIntegerField()
    sha = models.CharField(max_length=64)
    preview = ShownCut(max_length=200)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "position"], name="position_once"),
        ]
        indexes = [models.Index(fields=["session", "tool_call"], name="block_tool_call")]

    def __str__(self) -> str:
        return f"{self.type} at {self.position}"


class ModelCall(models.Model):
    """One API request of the agent; usage as reported and normalized, null if not reported."""

    session = models.ForeignKey(
        Session, on_delete=models.CASCADE, related_name="calls", db_index=False
    )
    call = models.CharField(max_length=200)
    # Nullable: only traces name it beside the call.
    response = models.CharField(  # noqa: DJ001
        max_length=200, null=True, help_text="the provider's id of the response, if `call` is none"
    )
    step = models.PositiveIntegerField()
    model = models.CharField(max_length=120, blank=True)
    at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    uncached = models.PositiveIntegerField(null=True)
    cache_read = models.PositiveIntegerField(null=True)
    cache_write_5m = models.PositiveIntegerField(null=True)
    cache_write_1h = models.PositiveIntegerField(null=True)
    output = models.PositiveIntegerField(null=True)
    reasoning = models.PositiveIntegerField(null=True)
    # Nullable: most responses take one request.
    iterations = models.TextField(  # noqa: DJ001
        null=True, help_text="requests behind the response if several, JSON rows"
    )
    reconciles = models.BooleanField(default=True)
    usage_raw = models.TextField(blank=True, help_text="the provider's own object, JSON")
    stop_reason = models.CharField(max_length=60, blank=True)
    cost_microusd = models.BigIntegerField(null=True)
    dropped = models.PositiveIntegerField(
        null=True, help_text="thinking blocks that the provider took out of the request"
    )
    context = models.CharField(
        max_length=40, blank=True, help_text="id of the managed context the agent says it sent"
    )
    settings = models.CharField(
        max_length=60, blank=True, help_text="thinking or effort level, from the log"
    )
    client = models.CharField(
        max_length=60, blank=True, help_text="client process that sent it, from the log"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "call"], name="call_once_per_session"),
            models.UniqueConstraint(fields=["session", "step"], name="step_once_per_session"),
        ]
        # Copies of a call in other sessions are looked up by their id.
        indexes = [
            models.Index(fields=["call"], name="call_by_id"),
            models.Index(
                fields=["response"],
                condition=models.Q(response__isnull=False),
                name="call_by_response",
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.step}"
