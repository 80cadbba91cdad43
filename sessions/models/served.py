"""What live sessions add to the store: contexts handed out, pins, and artefacts made beside."""

from __future__ import annotations

from django.db import models


class ServedContext(models.Model):
    """One context that we handed out, exact forever: a revision of a run, and messages up to `seq`.

    An entry stood in it where its block is of a message up to `seq`, no later revision than
    `revision` opened it, and none up to `revision` closed it. The agent's usage report echoes `id`.
    """

    id = models.CharField(primary_key=True, max_length=40)
    run = models.ForeignKey(
        "agent_sessions.Run", on_delete=models.CASCADE, related_name="served_contexts"
    )
    revision = models.PositiveIntegerField()
    seq = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    format = models.CharField(max_length=12)
    tokens = models.PositiveIntegerField(help_text="in the session's counting, hidden included")
    recited = models.PositiveIntegerField(
        default=0, help_text="of these, what was recited at the end and stood in no block"
    )
    knowledge = models.CharField(
        max_length=64, default="", blank=True,
        help_text="blob of what others shared, recited behind that; part of `recited`",
    )  # fmt: skip
    tools = models.ForeignKey(
        "agent_sessions.ToolGraph", null=True, on_delete=models.CASCADE, related_name="served",
        help_text="the graph by which its tools were chosen",
    )  # fmt: skip
    retry_of = models.PositiveIntegerField(
        null=True, help_text="failed step whose prefix and error this is, for `step` to do it again"
    )
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["run", "step"], name="served_at_step")]

    def __str__(self) -> str:
        return self.id


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
    """A text that takes time to make, made by a worker: a summary, an outline, or "new" or "same"
    of a message that may begin a new topic.

    `digest` names what it was made from and how (see `actions/artefacts.py`), so that it is made
    once and found again. Text is the blob `sha` of the team. Of a model: its usage and cost.
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
    note = models.CharField(max_length=400, blank=True, help_text="why a fallback made it")
    usage = models.JSONField(default=dict, help_text="tokens as reported, normalised")
    cost_microusd = models.BigIntegerField(null=True)
    masked = models.JSONField(default=dict, help_text="secrets masked before it was made, by kind")
    unsupported = models.JSONField(
        default=list, help_text="what a model made up twice and was cut out with its sentences"
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
