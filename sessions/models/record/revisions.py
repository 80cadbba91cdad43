"""How a context changed: runs, revisions, edits, replacements, and lifespans of entries."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from django.db import models

from sessions.models.web.shown import ShownChars, ShownCut
from sessions.models.web.statements import Statement, given_uuid

if TYPE_CHECKING:
    from sessions.models.record.sessions import Session


class Run(models.Model):
    """The contexts of a session from one source; runs are never mixed.

    `recorded` is what the model really saw, as far as the log shows; `managed` what we built for
    it; `simulated` what a policy would have built. `columns` holds figures per step (JSON, zlib;
    see `models/record/tail.py`), `figures` the sums for headers and lists. `entries_packed` caches
    the columns of the manifest so that opening a page does not read entry rows; `entries_key`
    identifies the rows it covers (see `delta.entries`).
    """

    class Origin(models.TextChoices):
        RECORDED = "recorded"
        MANAGED = "managed"
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
    steps = models.PositiveIntegerField(default=0, help_text="number of steps")
    head = models.PositiveIntegerField(default=0, help_text="number of the newest revision")
    indexed_head = models.PositiveIntegerField(
        default=0, help_text="managed: newest revision whose replacements search can find"
    )
    taken = models.PositiveIntegerField(
        default=0, help_text="managed: originals that the fold has processed"
    )
    fold = models.JSONField(
        default=dict,
        help_text="managed: state and failures of the strategies, window, hidden tokens",
    )
    figures = models.JSONField(default=dict)
    columns = models.BinaryField(default=b"")
    entries_packed = models.BinaryField(default=b"")
    entries_key = models.CharField(max_length=60, blank=True)
    settled = models.PositiveIntegerField(
        default=0, help_text="live: steps that `columns` covers; `tail` covers later ones"
    )
    tail = models.BinaryField(null=True, help_text="live: figures of the newest steps (JSON)")
    bases = models.BinaryField(
        null=True, help_text="live: where measuring continues (see `actions/record/measure.py`)"
    )
    generation = models.PositiveIntegerField(default=0, help_text="incremented by each measurement")
    reopened = models.PositiveIntegerField(
        null=True, help_text="live: lowest settled step that changed since it was measured"
    )
    # Nullable without default: as for sessions.
    rewritten = models.PositiveIntegerField(
        null=True, help_text="how often its last steps were taken back and written again"
    )
    engine = models.PositiveSmallIntegerField(
        default=0, help_text="version of the rules that measured its figures"
    )
    created = models.DateTimeField(auto_now_add=True)

    LARGE = ("columns", "entries_packed", "tail", "bases")
    """Large fields, deferred by most queries."""

    class Meta:
        indexes = [
            # Runs of live sessions have a version, too, and grow with history.
            models.Index(
                fields=["policy_version", "created"],
                condition=models.Q(origin="simulated"),
                name="run_simulated",
            ),
            models.Index(
                # SQLite uses a partial index only if its condition has no values.
                fields=["origin", "session"],
                condition=models.Q(head__gt=models.F("indexed_head")),
                name="run_unindexed",
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(origin="recorded"),
                name="one_recorded_run",
            ),
            models.UniqueConstraint(
                fields=["session"],
                condition=models.Q(origin="managed"),
                name="one_managed_run",
            ),
            models.UniqueConstraint(
                fields=["session", "policy_version"],
                condition=models.Q(origin="simulated"),
                name="one_simulated_run_per_policy_version",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.origin} {self.policy_version or ''}".strip()

    def of_session(self, session: Session) -> Run:
        """Itself with its session, which then counts, in memory only, as a simulation did."""
        if self.origin == Run.Origin.SIMULATED:
            session.count_with(self.token_ratio, self.figures.get("hidden_tokens"))
        self.session = session
        return self

    @classmethod
    def of(cls, session: Session, origin: Run.Origin) -> Run | None:
        """A session's recorded or managed run with its policy version, without what only pages
        need."""
        found: Run | None = _OF_ORIGIN[origin].first(session=session.pk)
        if found is not None:
            found.session = session
        return found


def _of_origin(origin: Run.Origin) -> Statement:
    return Statement(
        lambda: (
            Run.objects.select_related("policy_version")
            .defer(*Run.LARGE, "figures")
            .filter(session_id=given_uuid("session"), origin=origin)
        )
    )


_OF_ORIGIN = {origin: _of_origin(origin) for origin in Run.Origin}


class Revision(models.Model):
    """A numbered set of simultaneous edits; the model first sees its result at `step`.

    Token counts are the session's scaled tokens of the whole context; null if a log does not record
    them. `payback_steps` is the number of steps until it has earned back the cache it broke.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="revisions", db_index=False)
    number = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    key = models.CharField(max_length=200, blank=True, help_text="the log's own id")
    trigger = models.CharField(max_length=12)
    reason = ShownChars(max_length=400, blank=True)
    policy_version = models.ForeignKey(
        "agent_sessions.PolicyVersion", null=True, on_delete=models.PROTECT, related_name="+"
    )
    parameters = models.JSONField(default=dict, help_text="settings in effect when it was made")
    tokens_before = models.PositiveIntegerField(null=True)
    tokens_after = models.PositiveIntegerField(null=True)
    tokens_stated = models.BooleanField(
        default=False, help_text="counts are stated by the log; otherwise counted by us"
    )
    cache_rewritten = models.PositiveIntegerField(null=True, help_text="tokens")
    cost_microusd = models.BigIntegerField(null=True)
    payback_steps = models.PositiveIntegerField(null=True)
    at = models.BigIntegerField(null=True, help_text="ms since the epoch")
    estimate_us = models.PositiveBigIntegerField(
        null=True, help_text="managed: microseconds spent counting tokens"
    )
    shaping_us = models.PositiveBigIntegerField(
        null=True, help_text="managed: microseconds of the rest of the fold's step"
    )
    summary_ms = models.PositiveBigIntegerField(
        null=True, help_text="managed: milliseconds to make the summary"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "number"], name="revision_number_once")
        ]

    def __str__(self) -> str:
        return f"r{self.number} at step {self.step}"


class Replacement(models.Model):
    """A block that replaces original blocks in a context; its bytes are the blob `sha`."""

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="replacements", db_index=False
    )
    position = models.PositiveIntegerField()
    name = models.CharField(
        max_length=200, blank=True, help_text="the engine's id, used by later edits"
    )
    refs = models.JSONField(default=list, help_text="ids of originals that its text refers to")
    role = models.CharField(max_length=12)
    type = models.CharField(max_length=12)
    kind = models.CharField(max_length=10)
    tool = models.CharField(max_length=120, blank=True)
    tool_call = models.CharField(max_length=200, blank=True)
    tokens = models.PositiveIntegerField(help_text="o200k tokens, as for blocks")
    chars = models.PositiveIntegerField()
    sha = models.CharField(max_length=64)
    preview = ShownCut(max_length=200)

    class Meta:
        indexes = [models.Index(fields=["run", "position"], name="replacement_position")]

    def __str__(self) -> str:
        return f"replacement at {self.position}"


class Edit(models.Model):
    """One replacement: blocks replaced by another block, or removed. Its targets are the entries it
    closed.

    `summary` is set if the replacement is itself a message, as in recorded compactions.
    """

    SUMMARIZED = "summary"
    """Strategy in a recorded run: the agent's history begins with its own summary of what was
    removed. In a log's "compaction" the removed messages are still part of the log."""

    LEFT = ("rewind", "tools", "system", SUMMARIZED)
    """Strategies in a recorded run that remove what the agent does not send any more."""

    revision = models.ForeignKey(
        Revision, on_delete=models.CASCADE, related_name="edits", db_index=False
    )
    index = models.PositiveIntegerField()
    strategy = models.CharField(max_length=20)
    reason = ShownChars(max_length=400, blank=True)
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
    """The lifespan of a block or replacement: steps [from_step, to_step), open-ended if null.

    A block without entries in a run is in the context from its birth on.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="entries", db_index=False)
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
        indexes = [
            models.Index(fields=["run", "position"], name="entry_position"),
            models.Index(
                fields=["run", "position"],
                condition=models.Q(opened_by__isnull=False),
                name="entry_opened",
            ),
        ]

    def __str__(self) -> str:
        return f"[{self.from_step}, {self.to_step or '…'})"
