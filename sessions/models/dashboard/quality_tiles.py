"""Tiles on quality: recall, ledgers, reviews, failures and schemas."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from sessions.models.dashboard.matching import REAL_RUNS
from sessions.models.reviews.assessments import FactLedger
from sessions.models.reviews.reviews import Review
from sessions.models.web.sums import Column, Tile, ratio, total

RECALL = Tile(
    "recall",
    "Needed-later recall",
    "Each time that a later call used a fact that the model had read before: the share of times "
    "that it was still in context. In the rest it was named only, retrievable, or lost. Of managed "
    "contexts, and of recorded ones that a text left. Lost facts that were needed again count each "
    "once, as on the pages of their sessions and compactions. Found by rules.",
    "estimated",
    "recalled",
    lambda: Q(assessment__needs__gt=0),
    (
        Column("in_context", "In context", "share", ratio("in_context", "needs")),
        Column("named", "named", "share", ratio("named", "needs")),
        Column("retrievable", "retrievable", "share", ratio("retrievable", "needs")),
        Column("lost", "lost", "share", ratio("lost", "needs")),
        Column("needs", "times used", "count", total("needs", "recalled")),
        Column("kept", "times in context", "count", total("in_context", "recalled")),
        Column("facts", "lost facts needed again", "count", total("lost_facts", "compared")),
        Column("losing", "sessions that lost them", "count", total("lost_facts_in", "compared")),
    ),
    (
        ("not_recalled", "whose context no text left, or with nothing needed again"),
        ("not_assessed", "not assessed yet"),
    ),
    "No text is known to have left the context of a session in this range.",
)


LEDGER = Tile(
    "ledger",
    "Facts kept",
    "Share of the facts in compacted messages that were kept; each fact counts once. The mean "
    "score counts each ledger once: kept facts in full, retrievable ones half, minus "
    "unsupported ones. By rules, without a model.",
    "estimated",
    "ledgered",
    lambda: Exists(
        FactLedger.objects.filter(
            revision__run__session=OuterRef("pk"),
            revision__run__origin__in=REAL_RUNS,
            score__isnull=False,
        )
    ),
    (
        Column("share", "Kept", "share", ratio("ledger_kept", "ledger_facts")),
        Column("score", "mean score", "share", ratio("ledger_score", "ledger_permille")),
        Column("ledgers", "compactions", "count", total("ledgers", "ledgers")),
        Column("kept", "facts kept", "count", total("ledger_kept", "ledgers")),
        Column("retrievable", "facts retrievable", "count", total("ledger_retrievable", "ledgers")),
        Column("lost", "facts lost", "count", total("ledger_lost", "ledgers")),
        Column("unsupported", "unsupported", "count", total("ledger_unsupported", "ledgers")),
    ),
    (
        ("no_compaction", "without a compaction"),
        ("unscored", "whose log lacks most of the replaced messages, or replaced no fact"),
        ("unledgered", "whose compactions left no readable summary, or are not assessed yet"),
    ),
    "No compaction in this range has a ledger with facts.",
)


REVIEWS = Tile(
    "reviews",
    "Reviews passed",
    "Finished reviews of compactions in these sessions: passed ÷ all.",
    "measured",
    "reviewed",
    lambda: Exists(
        Review.objects.filter(
            item__revision__run__session=OuterRef("pk"),
            item__finished__isnull=False,
            submitted__isnull=False,
        )
    ),
    (
        Column("passed", "Passed", "share", ratio("review_pass", "reviews")),
        Column("pass", "pass", "count", total("review_pass", "reviews")),
        Column("fix", "fix", "count", total("review_fix", "reviews")),
        Column("fail", "fail", "count", total("review_fail", "reviews")),
    ),
    (
        ("no_compaction", "without a compaction"),
        ("unreviewed", "whose compactions no rule selected, or whose reviews are not finished"),
    ),
    "No compaction in this range has been reviewed.",
)


FAILURES = Tile(
    "failures",
    "Failures recovered",
    "Failed tool calls followed by a successful retry ÷ failed tool calls. OpenAI, SWE-agent "
    "and mini-SWE-agent logs do not record which calls failed, nor do Anthropic arrays without "
    "is_error.",
    "estimated",
    "failed_calls",
    lambda: Q(assessment__failures__gt=0),
    (
        Column("rate", "Recovered", "share", ratio("recovered", "failures")),
        Column("failures", "failures", "count", total("failures", "assessed")),
        Column("recovered", "recovered", "count", total("recovered", "assessed")),
    ),
    (
        ("no_failures", "without a failed call"),
        ("silent", "in a format that does not record failures"),
        ("not_assessed", "not assessed yet"),
    ),
    "No log in this range records a failed tool call.",
)


SCHEMAS = Tile(
    "schemas",
    "Schema violations",
    "Tool calls whose input lacks a required field, has a field that is not allowed, or one of "
    "the wrong type ÷ calls of tools with a known definition. A simple check: every violation "
    "it reports is real.",
    "measured",
    "checked",
    lambda: Q(assessment__checked_calls__gt=0),
    (
        Column("share", "Violations", "share", ratio("violations", "checked_calls")),
        Column("violations", "calls", "count", total("violations", "checked")),
        Column("checked", "checked", "count", total("checked_calls", "checked")),
    ),
    (
        ("unchecked", "whose log has no tool definitions, or that call none of the defined tools"),
        ("not_assessed", "not assessed yet"),
    ),
    "No log in this range contains the input schema of a tool that it calls.",
)
