"""What is known of a session and its compactions once they are over, without a model."""

from __future__ import annotations

from django.db import models


class FactLedger(models.Model):
    """What became of the facts that one compaction replaced.

    Counts are of facts; `score` is permille (kept whole, retrievable half, less what is
    unsupported), null where there was no fact, or the log lacks most of what was replaced.
    `facts` lists them, the weightiest first, as far as they are kept
    (`compaction/facts/ledger.py`); `sections` says of each section that the form asks for whether
    it is there, `quality` has the measures of `compaction/summaries/quality.py`; `after` counts and
    lists what came of it later, seen up to step `looked_until`.
    """

    revision = models.OneToOneField(
        "agent_sessions.Revision", on_delete=models.CASCADE, related_name="fact_ledger"
    )
    kept = models.PositiveIntegerField(default=0)
    retrievable = models.PositiveIntegerField(default=0)
    lost = models.PositiveIntegerField(default=0)
    unsupported = models.PositiveIntegerField(default=0)
    score = models.PositiveIntegerField(null=True, help_text="permille")
    facts = models.JSONField(default=list)
    sections = models.JSONField(default=list)
    quality = models.JSONField(default=list, help_text="measures that need no model")
    after = models.JSONField(default=dict)
    after_effects = models.PositiveIntegerField(default=0)
    looked_until = models.PositiveIntegerField(default=0)
    engine = models.PositiveIntegerField(default=0, help_text="rises when its rules change")
    changed = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.kept} kept, {self.lost} lost"


class Assessment(models.Model):
    """Sums of a session that dashboards and guardrails add up; null where nothing tells.

    Micro-dollars of reported usage by where they went, `avoidable` and `unexplained` being parts of
    `write` and `fresh` that paid again for what had been cached, for a cause that somebody can
    avoid and for one that no log shows; failed tool calls and those that succeeded later;
    needed-later recall of what was served, in counts of needs; steps that could be judged
    and that drift from the task; tool calls whose schema is known and that break it. `tools` counts
    which tool follows which (`compaction/tools/habits.py`). `steps` says up to which step it holds.
    """

    session = models.OneToOneField(
        "agent_sessions.Session",
        primary_key=True,
        on_delete=models.CASCADE,
        related_name="assessment",
    )
    steps = models.PositiveIntegerField(default=0)
    fresh_microusd = models.BigIntegerField(null=True)
    write_microusd = models.BigIntegerField(null=True)
    read_microusd = models.BigIntegerField(null=True)
    output_microusd = models.BigIntegerField(null=True)
    avoidable_microusd = models.BigIntegerField(null=True)
    unexplained_microusd = models.BigIntegerField(null=True)
    failures = models.PositiveIntegerField(default=0)
    recovered = models.PositiveIntegerField(default=0)
    needs = models.PositiveIntegerField(null=True)
    in_place = models.PositiveIntegerField(null=True)
    named = models.PositiveIntegerField(null=True)
    retrievable = models.PositiveIntegerField(null=True)
    lost = models.PositiveIntegerField(null=True)
    judged_steps = models.PositiveIntegerField(null=True)
    adrift_steps = models.PositiveIntegerField(null=True)
    checked_calls = models.PositiveIntegerField(null=True)
    schema_violations = models.PositiveIntegerField(null=True)
    tools = models.JSONField(default=dict)
    engine = models.PositiveIntegerField(default=0, help_text="rises when its rules change")
    changed = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"assessment up to S{self.steps}"
