"""Assessments of sessions and their compactions, made by rules without a model."""

from __future__ import annotations

from django.db import models

from sessions.models.web.shown import ShownJSON


class FactLedger(models.Model):
    """The fate of the facts that one compaction replaced.

    Counts are of facts; `score` is permille (kept in full, retrievable half, minus unsupported),
    null without facts or if the log lacks most of the replaced messages. `facts` lists the most
    important ones (`compaction/losses/ledger.py`); `sections` says which required sections are
    present; `quality` holds the measures of `compaction/losses/quality.py`; `after` counts and
    lists later effects, seen up to step `looked_until`.
    """

    revision = models.OneToOneField(
        "agent_sessions.Revision", on_delete=models.CASCADE, related_name="fact_ledger"
    )
    kept = models.PositiveIntegerField(default=0)
    retrievable = models.PositiveIntegerField(default=0)
    lost = models.PositiveIntegerField(default=0)
    missed = models.PositiveIntegerField(default=0, help_text="lost facts that were needed again")
    unsupported = models.PositiveIntegerField(default=0)
    score = models.PositiveIntegerField(null=True, help_text="permille")
    facts = ShownJSON(default=list)
    sections = ShownJSON(default=list)
    quality = ShownJSON(default=list, help_text="measures that need no model")
    after = ShownJSON(default=dict)
    after_effects = models.PositiveIntegerField(default=0)
    looked_until = models.PositiveIntegerField(default=0)
    engine = models.PositiveIntegerField(default=0, help_text="rises when its rules change")
    changed = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.kept} kept, {self.lost} lost"


class Assessment(models.Model):
    """Sums of a session for dashboards and guardrails; null if unknown.

    Micro-dollars of reported usage by where they went; `avoidable` and `unexplained` are the parts
    of cache write and uncached that paid again for cached tokens, for avoidable causes and for
    causes that no log shows. `hour_saved` is what a one-hour cache TTL would have saved over the
    five minutes that were requested, negative if it costs more; null if none were. Failed tool
    calls and those that succeeded later; needed-later recall of the contexts that the model saw, in
    needs; `lost_facts` were needed again, by the ledgers of compactions and by `dropped`: those of
    removals without a summary, as lines of a ledger by the revision's number; `missing` are the
    worst facts that calls used without having them in context, null if unknown; micro-dollars of
    losses (`compaction/losses/repairs.py`); steps that could be judged and those that drift from
    the task; tool calls with a known schema and those that violate it. `tools` counts which tool
    follows which (`compaction/tools/habits.py`). `definitions` has the tokens and micro-dollars of
    each tool's definition, which were `used`, and the `basis` of the money; `unused_tokens` are
    those of the others, null if no list of tools is known. `steps` is the last step covered.
    """

    session = models.OneToOneField(
        "agent_sessions.Session",
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="assessment",
    )
    steps = models.PositiveIntegerField(default=0)
    uncached_microusd = models.BigIntegerField(null=True)
    write_microusd = models.BigIntegerField(null=True)
    read_microusd = models.BigIntegerField(null=True)
    output_microusd = models.BigIntegerField(null=True)
    avoidable_microusd = models.BigIntegerField(null=True)
    unexplained_microusd = models.BigIntegerField(null=True)
    hour_saved_microusd = models.BigIntegerField(null=True)
    failures = models.PositiveIntegerField(default=0)
    recovered = models.PositiveIntegerField(default=0)
    needs = models.PositiveIntegerField(null=True)
    in_context = models.PositiveIntegerField(null=True)
    named = models.PositiveIntegerField(null=True)
    retrievable = models.PositiveIntegerField(null=True)
    lost = models.PositiveIntegerField(null=True)
    lost_facts = models.PositiveIntegerField(null=True)
    dropped = ShownJSON(default=dict)
    missing = ShownJSON(null=True)
    losses_microusd = models.BigIntegerField(null=True)
    judged_steps = models.PositiveIntegerField(null=True)
    adrift_steps = models.PositiveIntegerField(null=True)
    checked_calls = models.PositiveIntegerField(null=True)
    schema_violations = models.PositiveIntegerField(null=True)
    tools = models.JSONField(default=dict)
    definitions = models.JSONField(default=dict)
    unused_tokens = models.PositiveBigIntegerField(null=True)
    engine = models.PositiveIntegerField(default=0, help_text="rises when its rules change")
    changed = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            models.Index(fields=["-changed"], name="assessment_newest"),
            models.Index(
                fields=["-changed"],
                name="assessment_with_definitions",
                condition=models.Q(unused_tokens__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"assessment up to step {self.steps}"
