"""Records of live sessions: managed contexts, pins, and artefacts."""

from __future__ import annotations

from django.db import models


class ManagedContext(models.Model):
    """One managed context, reproducible forever: a run's revision, and the messages up to `seq`.

    It contains the entries whose block belongs to a message up to `seq` and that were opened, but
    not closed, by revisions up to `revision`. The agent's usage report echoes `id`.
    """

    id = models.CharField(primary_key=True, max_length=40)
    run = models.ForeignKey(
        "agent_sessions.Run", on_delete=models.CASCADE, related_name="managed_contexts"
    )
    revision = models.PositiveIntegerField()
    seq = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    format = models.CharField(max_length=12)
    tokens = models.PositiveIntegerField(
        help_text="in the session's counting, hidden tokens included"
    )
    recited = models.PositiveIntegerField(
        default=0, help_text="of `tokens`: recited at the end, in no block"
    )
    knowledge = models.CharField(
        max_length=64, default="", blank=True,
        help_text="blob of knowledge shared by others, recited after that; part of `recited`",
    )  # fmt: skip
    tools = models.ForeignKey(
        "agent_sessions.ToolGraph", null=True, on_delete=models.CASCADE, related_name="managed",
        help_text="the graph that selected its tools",
    )  # fmt: skip
    retry_of = models.PositiveIntegerField(
        null=True, help_text="failed step that `step` retries: its prefix and error"
    )
    one_turn = models.BooleanField(
        default=False, help_text="its recitation is a system message for one turn"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["run", "step"], name="managed_at_step")]

    def __str__(self) -> str:
        return self.id


class SentRecitation(models.Model):
    """The system message that the context of a step ended with (zlib), to be sent again unchanged
    before the step's response."""

    run = models.ForeignKey(
        "agent_sessions.Run", on_delete=models.CASCADE, related_name="sent_recitations"
    )
    step = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "step"], name="recitation_once_per_step")
        ]

    def __str__(self) -> str:
        return f"recitation of step {self.step}"


class Pin(models.Model):
    """A message that stays verbatim in every managed context; unpinning deletes the row."""

    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="pins"
    )
    message = models.OneToOneField(
        "agent_sessions.Message", on_delete=models.CASCADE, related_name="pin"
    )
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"pin of {self.message_id}"


class Artefact(models.Model):
    """A text prepared by a worker: a summary, an outline, or the verdict ("new" or "same") on
    whether a message begins a new topic.

    `digest` identifies its inputs and method (see `actions/live/artefacts.py`), so that it is made
    only once. The text is the team's blob `sha`. If a model made it: its usage and cost.
    """

    class Kind(models.TextChoices):
        SUMMARY = "summary"
        OUTLINE = "outline"
        TOPIC = "topic"

    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="artefacts"
    )
    kind = models.CharField(max_length=10, choices=Kind.choices)
    digest = models.CharField(max_length=64)
    sha = models.CharField(max_length=64)
    maker = models.CharField(
        max_length=60, help_text="extractive, anthropic, tree-sitter, embedded, …"
    )
    model = models.CharField(max_length=120, blank=True)
    note = models.CharField(max_length=400, blank=True, help_text="why the fallback was used")
    usage = models.JSONField(default=dict, help_text="tokens as reported, normalised")
    cost_microusd = models.BigIntegerField(null=True)
    masked = models.JSONField(default=dict, help_text="secrets masked in the input, by kind")
    unsupported = models.JSONField(
        default=list, help_text="what a model made up twice; cut out together with its sentences"
    )
    ms = models.PositiveIntegerField(default=0)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session", "kind", "digest"], name="artefact_once_per_session"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.maker}"
