"""The figures of a team's dashboard: which sessions each tile counts, how, and what it excludes."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Exists, OuterRef, Q

from sessions.models.dashboard.matching import NEAR_LIMIT
from sessions.models.record.revisions import Run
from sessions.models.reviews.assessments import FactLedger
from sessions.models.reviews.reviews import Review
from sessions.models.web.sums import Column, Sums, Tile, Value, quantile, ratio, total

REAL_RUNS = (Run.Origin.RECORDED, Run.Origin.MANAGED)
"""Origins of runs that are not simulated."""


def _peak(sums: Sums, share: float) -> Value:
    permille = quantile(sums.peaks, share)
    return None if permille is None else permille / 1000


def _near(sums: Sums) -> Value:
    if not sums.peaks:
        return None
    return sum(many for peak, many in sums.peaks.items() if peak >= 1000 * NEAR_LIMIT)


def _steps(sums: Sums) -> Value:
    return sum(steps * many for steps, many in sums.steps.items()) if sums.steps else None


def _assessed(name: str) -> Callable[[Sums], Value]:
    return total(name, "split")


SPEND = Tile(
    "spend",
    "Spend",
    "Reported usage at list prices, summed over sessions.",
    "measured",
    "priced",
    lambda: Q(cost_microusd__isnull=False),
    (
        Column("spend", "Spend", "microusd", total("cost", "priced"), "short"),
        Column("per_session", "per session", "microusd", ratio("cost", "priced"), "short"),
    ),
    (
        ("no_usage", "without reported usage"),
        ("no_price", "of a model without a known price"),
        ("partial", "with usage for some calls only: their cost is a lower bound"),
        ("understated", "with outputs longer than reported: their cost is a lower bound"),
    ),
    "No session in this range reports usage of a model with a known price.",
)

AVOIDABLE = Tile(
    "avoidable",
    "Avoidable rewrites",
    "Cost of writing tokens again that were already cached, by reported usage: the avoidable "
    "part, and the part that no log explains. Both are included in cache write and uncached.",
    "measured",
    "split",
    lambda: Q(assessment__uncached_microusd__isnull=False),
    (
        Column("avoidable", "Avoidable", "microusd", _assessed("avoidable"), "split_partial"),
        Column("unexplained", "unexplained", "microusd", _assessed("unexplained"), "split_partial"),
        Column("uncached", "uncached", "microusd", _assessed("uncached_cost"), "split_partial"),
        Column("write", "cache write", "microusd", _assessed("write_cost"), "split_partial"),
        Column("read", "cache read", "microusd", _assessed("read_cost"), "split_partial"),
        Column("output", "output", "microusd", _assessed("output_cost"), "split_short"),
    ),
    (
        ("no_usage", "without reported usage"),
        ("no_price", "of a model without a known price"),
        ("not_assessed", "not assessed yet"),
        ("split_partial", "with usage for some calls only: their cost is a lower bound"),
    ),
    "No session in this range reports usage of a model with a known price.",
)

CACHE = Tile(
    "cache",
    "Cache read share",
    "Prompt tokens read from the cache ÷ all prompt tokens, as providers report them.",
    "measured",
    "usage",
    lambda: Q(usage_calls__gt=0),
    (
        Column("share", "Cache read", "share", ratio("read", "uncached", "read", "write")),
        Column("read", "tokens read", "tokens", total("read", "usage")),
        Column("write", "written", "tokens", total("write", "usage")),
        Column("uncached", "uncached", "tokens", total("uncached", "usage")),
    ),
    (("no_usage", "without reported usage"),),
    "No session in this range reports usage.",
)

WINDOW = Tile(
    "window",
    "Peak window fill",
    "The fullest context of each session ÷ the window of its model.",
    None,
    "windowed",
    lambda: Q(window__gt=0, peak_tokens__gt=0),
    (
        Column("median", "Median", "share", lambda sums: _peak(sums, 0.5)),
        Column("p90", "9 of 10 below", "share", lambda sums: _peak(sums, 0.9)),
        Column("near", "near the limit", "count", _near),
    ),
    (
        ("no_window", "of a model without a known window, or without a step"),
        ("peak_counted", "without reported usage: we counted their peak"),
    ),
    "No model in this range has a known window.",
)

COMPACTIONS = Tile(
    "compactions",
    "Compactions per session",
    "Compactions recorded in logs and compactions of managed contexts, per session.",
    "measured",
    "sessions",
    Q,
    (
        Column("per_session", "Per session", "mean", ratio("compactions", "sessions")),
        Column("recorded", "recorded", "count", total("recorded")),
        Column("managed", "managed", "count", total("managed")),
    ),
)

RECALL = Tile(
    "recall",
    "Needed-later recall",
    "Facts that later calls used and the model had read before: the share that was still in the "
    "managed context. The rest was named only, retrievable, or lost. Found by rules.",
    "estimated",
    "recalled",
    lambda: Q(assessment__needs__gt=0),
    (
        Column("in_context", "In context", "share", ratio("in_context", "needs")),
        Column("named", "named", "share", ratio("named", "needs")),
        Column("retrievable", "retrievable", "share", ratio("retrievable", "needs")),
        Column("lost", "lost", "share", ratio("lost", "needs")),
        Column("needs", "needs", "count", total("needs", "recalled")),
    ),
    (
        ("not_recalled", "not managed, or with nothing needed again"),
        ("not_assessed", "not assessed yet"),
    ),
    "Counted only for managed sessions; none in this range needed anything again. Run a "
    "simulation to see what a policy would have kept.",
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
        Column("retrievable", "retrievable", "count", total("ledger_retrievable", "ledgers")),
        Column("lost", "lost", "count", total("ledger_lost", "ledgers")),
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

DRIFT = Tile(
    "drift",
    "Drift",
    "Steps that name nothing from the user's requests or an open todo ÷ steps that can be "
    "judged. Found by rules; exploring counts as drift too, so compare sessions rather than "
    "reading it as wasted work.",
    "estimated",
    "judged",
    lambda: Q(assessment__judged_steps__gt=0),
    (
        Column("share", "Drifting", "share", ratio("adrift_steps", "judged_steps")),
        Column("adrift", "steps", "count", total("adrift_steps", "judged")),
        Column("judged", "judged", "count", total("judged_steps", "judged")),
    ),
    (
        ("unjudged", "whose task names no file, name or number, or whose steps name none"),
        ("not_assessed", "not assessed yet"),
    ),
    "No task in this range names anything that a step could name again.",
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
    "No log in this range contains the definitions of the tools it calls.",
)

OUTCOMES = Tile(
    "outcomes",
    "Succeeded",
    "Session outcomes as reported by their agents: succeeded ÷ reported.",
    "measured",
    "reported_outcome",
    lambda: ~Q(outcome=""),
    (
        Column("rate", "Succeeded", "share", ratio("succeeded", "reported_outcome")),
        Column("succeeded", "succeeded", "count", total("succeeded")),
        Column("failed", "failed", "count", total("failed")),
        Column("abandoned", "abandoned", "count", total("abandoned")),
        Column("unknown", "unknown", "count", total("without_outcome")),
    ),
    (("without_outcome", "without a reported outcome"),),
    "No session in this range has an outcome: logs contain none, but agents may report one.",
)

STEPS = Tile(
    "steps",
    "Steps reached",
    "Model calls of each session.",
    "measured",
    "stepped",
    lambda: Q(step_count__gt=0),
    (
        Column("median", "Median", "count", lambda sums: quantile(sums.steps, 0.5)),
        Column("p90", "9 of 10 below", "count", lambda sums: quantile(sums.steps, 0.9)),
        Column("all", "in all", "count", _steps),
    ),
    (("stepless", "without a model call"),),
)

TILES = (
    *(SPEND, AVOIDABLE, CACHE, WINDOW, COMPACTIONS, LEDGER),
    *(RECALL, REVIEWS, FAILURES, OUTCOMES, STEPS, DRIFT, SCHEMAS),
)  # fmt: skip

COUNTED: dict[str, Tile] = {tile.name: tile for tile in TILES}
"""Tiles by name, as used in URLs: filters the session list to the sessions a tile counts."""
