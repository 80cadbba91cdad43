"""How a context changed: runs, revisions, edits, replacements, and when each entry stood."""

from __future__ import annotations

import uuid

from django.db import models


class Run(models.Model):
    """One truth about a session's contexts, never mixed with another.

    `recorded` is what the model really saw as far as the log shows, `served` what we handed out,
    `simulated` what a policy would have made of it. `columns` holds figures per step (JSON, zlib;
    see `models/tail.py`), `figures` the sums for headers and lists. `entries_packed` is the
    manifest's part that is read from the rows of entries, kept so that opening a page does not
    read them; `entries_key` says for which rows it holds (see `delta.entries`).
    """

    class Origin(models.TextChoices):
        RECORDED = "recorded"
        SERVED = "served"
        SIMULATED = "simulated"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    session = models.ForeignKey(
        "agent_sessions.Session", on_delete=models.CASCADE, related_name="runs"
    )
    origin = models.CharField(max_length=10, choices=Origin.choices)
    policy_version = models.ForeignKey(
        "agent_sessions.PolicyVersion", null=True, on_delete=models.PROTECT, related_name="runs"
    )
    summarizer = models.CharField(max_length=60, blank=True)
    token_ratio = models.PositiveIntegerField(default=1000, help_text="permille, frozen")
    steps = models.PositiveIntegerField(default=0, help_text="steps that the run covers")
    head = models.PositiveIntegerField(default=0, help_text="number of the newest revision")
    taken = models.PositiveIntegerField(
        default=0, help_text="served: originals that the fold has taken in"
    )
    fold = models.JSONField(
        default=dict, help_text="served: marks and failures of the strategies, window, hidden"
    )
    figures = models.JSONField(default=dict)
    columns = models.BinaryField(default=b"")
    entries_packed = models.BinaryField(default=b"")
    entries_key = models.CharField(max_length=60, blank=True)
    settled = models.PositiveIntegerField(
        default=0, help_text="live: steps that `columns` covers; `tail` covers those after"
    )
    tail = models.BinaryField(null=True, help_text="live: figures of the newest steps (JSON)")
    bases = models.BinaryField(
        null=True, help_text="live: from where measuring goes on (see `actions/measure.py`)"
    )
    generation = models.PositiveIntegerField(default=0, help_text="rises with each measuring")
    reopened = models.PositiveIntegerField(
        null=True, help_text="live: lowest settled step that changed since it was measured"
    )
    engine = models.PositiveSmallIntegerField(
        default=0, help_text="the rules that its figures were measured by"
    )
    created = models.DateTimeField(auto_now_add=True)

    LARGE = ("columns", "entries_packed", "tail", "bases")
    """Fields that hardly anybody needs who reads a row."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(origin="recorded"),
                name="one_recorded_run",
            ),
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(origin="served"),
                name="one_served_run",
            ),
            models.UniqueConstraint(
                fields=["session", "policy_version"],
                condition=models.Q(origin="simulated"),
                name="one_simulated_run_per_policy_version",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.origin} {self.policy_version or ''}".strip()


class Revision(models.Model):
    """A numbered set of edits, made at once; the model sees its result first at `step`.

    Token counts are the session's scaled tokens of the whole context; null where a log does not
    say. `payback_steps` are the steps after which it earns the cache it rewrote.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    key = models.CharField(max_length=200, blank=True, help_text="the log's own id")
    trigger = models.CharField(max_length=12)
    reason = models.CharField(max_length=400, blank=True)
    policy_version = models.ForeignKey(
        "agent_sessions.PolicyVersion", null=True, on_delete=models.PROTECT, related_name="+"
    )
    parameters = models.JSONField(default=dict, help_text="as they were when it was made")
    tokens_before = models.PositiveIntegerField(null=True)
    tokens_after = models.PositiveIntegerField(null=True)
    tokens_stated = models.BooleanField(
        default=False, help_text="the log itself states the counts; else they are ours"
    )
    cache_rewritten = models.PositiveIntegerField(null=True, help_text="tokens")
    cost_microusd = models.BigIntegerField(null=True)
    payback_steps = models.PositiveIntegerField(null=True)
    at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    estimate_us = models.PositiveBigIntegerField(
        null=True, help_text="served: microseconds of counting tokens"
    )
    shaping_us = models.PositiveBigIntegerField(
        null=True, help_text="served: microseconds of the rest of the fold's step"
    )
    summary_ms = models.PositiveBigIntegerField(
        null=True, help_text="served: how long its summary took to be made"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="revision_number_once")
        ]

    def __str__(self) -> str:
        return f"r{self.number} at S{self.step}"


class Replacement(models.Model):
    """What stands in a context instead of original blocks; its bytes are the blob `sha`."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="replacements")
    position = models.PositiveIntegerField()
    name = models.CharField(
        max_length=200, blank=True, help_text="the engine's id, by which later edits name it"
    )
    refs = models.JSONField(default=list, help_text="ids of originals its text refers to")
    role = models.CharField(max_length=12)
    type = models.CharField(max_length=12)
    kind = models.CharField(max_length=10)
    tool = models.CharField(max_length=120, blank=True)
    tool_call = models.CharField(max_length=200, blank=True)
    tokens = models.PositiveIntegerField(help_text="o200k tokens, as for blocks")
    chars = models.PositiveIntegerField()
    sha = models.CharField(max_length=64)
    preview = models.CharField(max_length=200)

    class Meta:
        indexes = [models.Index(fields=["run", "position"], name="replacement_position")]

    def __str__(self) -> str:
        return f"replacement at {self.position}"


class Edit(models.Model):
    """Replace these blocks by this one, or by nothing; its targets are the entries it closed.

    `summary` is set where the replacement is itself a message of the log, as in recorded
    compactions.
    """

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="edits")
    index = models.PositiveIntegerField()
    strategy = models.CharField(max_length=20)
    reason = models.CharField(max_length=400, blank=True)
    replacement = models.ForeignKey(
        Replacement, null=True, on_delete=models.CASCADE, related_name="edits"
    )
    summary = models.ForeignKey(
        "agent_sessions.Block", null=True, on_delete=models.CASCADE, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["revision", "index"], name="edit_index_once")
        ]

    def __str__(self) -> str:
        return f"{self.strategy} {self.index}"


class Entry(models.Model):
    """When a block or a replacement stood: steps [from_step, to_step), open where to_step is null.

    A block without entries in a run stands from its birth on.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="entries")
    position = models.PositiveIntegerField()
    block = models.ForeignKey(
        "agent_sessions.Block", null=True, on_delete=models.CASCADE, related_name="entries"
    )
    replacement = models.ForeignKey(
        Replacement, null=True, on_delete=models.CASCADE, related_name="entries"
    )
    from_step = models.PositiveIntegerField()
    to_step = models.PositiveIntegerField(null=True)
    opened_by = models.ForeignKey(Edit, null=True, on_delete=models.CASCADE, related_name="opened")
    closed_by = models.ForeignKey(Edit, null=True, on_delete=models.CASCADE, related_name="closed")

    class Meta:
        indexes = [models.Index(fields=["run", "position"], name="entry_position")]

    def __str__(self) -> str:
        return f"[{self.from_step}, {self.to_step or '…'})"
