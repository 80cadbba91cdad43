"""The figures of a team's dashboard: which sessions each counts, how, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Exists, OuterRef, Q

from sessions.models.assessments import FactLedger
from sessions.models.matching import NEAR_LIMIT
from sessions.models.reviews import Review
from sessions.models.revisions import Run
from sessions.models.sums import Column, Sums, Tile, Value, quantile, ratio, total

REAL_RUNS = (Run.Origin.RECORDED, Run.Origin.SERVED)
"""Runs that are no simulation."""


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
        ("no_price", "of a model whose price is not known"),
        ("partial", "with usage of some calls only: their cost is a lower bound"),
        ("understated", "with outputs longer than reported: their cost is a lower bound"),
    ),
    "No session of this range reports usage of a model whose price is known.",
)

AVOIDABLE = Tile(
    "avoidable",
    "Avoidable rewrites",
    "What was paid again for tokens that had been cached, by reported usage, for causes that "
    "somebody can avoid; beside it what no log explains. Both are parts of cache write and fresh.",
    "measured",
    "split",
    lambda: Q(assessment__fresh_microusd__isnull=False),
    (
        Column("avoidable", "Avoidable", "microusd", _assessed("avoidable"), "split_partial"),
        Column("unexplained", "unexplained", "microusd", _assessed("unexplained"), "split_partial"),
        Column("fresh", "fresh", "microusd", _assessed("fresh_cost"), "split_partial"),
        Column("write", "cache write", "microusd", _assessed("write_cost"), "split_partial"),
        Column("read", "cache read", "microusd", _assessed("read_cost"), "split_partial"),
        Column("output", "output", "microusd", _assessed("output_cost"), "split_short"),
    ),
    (
        ("no_usage", "without reported usage"),
        ("no_price", "of a model whose price is not known"),
        ("not_assessed", "not assessed yet"),
        ("split_partial", "with usage of some calls only: what they paid is a lower bound"),
    ),
    "No session of this range reports usage of a model whose price is known.",
)

CACHE = Tile(
    "cache",
    "Cache read share",
    "Prompt tokens read from the cache ÷ all prompt tokens, as providers report them.",
    "measured",
    "usage",
    lambda: Q(usage_calls__gt=0),
    (
        Column("share", "Cache read", "share", ratio("read", "fresh", "read", "write")),
        Column("read", "tokens read", "tokens", total("read", "usage")),
        Column("write", "written", "tokens", total("write", "usage")),
        Column("fresh", "fresh", "tokens", total("fresh", "usage")),
    ),
    (("no_usage", "without reported usage"),),
    "No session of this range reports usage.",
)

WINDOW = Tile(
    "window",
    "Peak window use",
    "The fullest context of each session ÷ the window of its model.",
    None,
    "windowed",
    lambda: Q(window__gt=0, peak_tokens__gt=0),
    (
        Column("median", "Median", "share", lambda sums: quantile(sums.peaks, 0.5)),
        Column("p90", "9 of 10 below", "share", lambda sums: quantile(sums.peaks, 0.9)),
        Column(
            "near",
            "near the limit",
            "count",
            lambda sums: sum(peak >= NEAR_LIMIT for peak in sums.peaks) if sums.peaks else None,
        ),
    ),
    (
        ("no_window", "of a model whose window is not known, or without a step"),
        ("peak_counted", "without reported usage: their peak is counted by us"),
    ),
    "The window of no model of this range is known.",
)

COMPACTIONS = Tile(
    "compactions",
    "Compactions per session",
    "Compactions that logs record, and those of contexts that we handed out, ÷ sessions.",
    "measured",
    "sessions",
    Q,
    (
        Column("per_session", "Per session", "mean", ratio("compactions", "sessions")),
        Column("recorded", "recorded", "count", total("recorded")),
        Column("served", "served", "count", total("served")),
    ),
)

RECALL = Tile(
    "recall",
    "Needed-later recall",
    "Of what later calls used and the model had read: the share that still stood in the contexts "
    "that we handed out. Named, to be fetched again, and lost are the rest. Found by rules.",
    "estimated",
    "recalled",
    lambda: Q(assessment__needs__gt=0),
    (
        Column("in_place", "In place", "share", ratio("in_place", "needs")),
        Column("named", "named", "share", ratio("named", "needs")),
        Column("retrievable", "retrievable", "share", ratio("retrievable", "needs")),
        Column("lost", "lost", "share", ratio("lost", "needs")),
        Column("needs", "needs", "count", total("needs", "recalled")),
    ),
    (
        ("not_recalled", "not managed by us, or in need of nothing again"),
        ("not_assessed", "not assessed yet"),
    ),
    "Counted only for sessions whose contexts we handed out; none of this range needed anything "
    "again. What a policy would have kept is told by a simulation.",
)

LEDGER = Tile(
    "ledger",
    "Facts kept",
    "Of all facts in what compactions replaced, those that were kept: facts are summed over "
    "compactions, each counts once. The mean score beside it counts each ledger once: kept facts "
    "whole, retrievable ones half, less what is unsupported. By rules, without a model.",
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
        ("unscored", "whose log lacks most of what was replaced, or replaced no fact"),
        ("unledgered", "whose compactions left no summary to read, or are not looked at yet"),
    ),
    "No compaction of this range has a ledger with facts.",
)

REVIEWS = Tile(
    "reviews",
    "Reviews passed",
    "Reviews of compactions in these sessions that all wanted reviewers have finished: passed ÷ "
    "all.",
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
        ("unreviewed", "whose compactions no rule picked, or whose reviews are not finished"),
    ),
    "Nobody has reviewed a compaction of this range.",
)

FAILURES = Tile(
    "failures",
    "Failures recovered",
    "Failed tool calls after which the same was done without a failure ÷ failed tool calls. "
    "OpenAI, SWE-agent and mini-SWE-agent logs do not say which calls failed, nor do "
    "Anthropic arrays without is_error.",
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
        ("silent", "in a format that tells no failures"),
        ("not_assessed", "not assessed yet"),
    ),
    "No log of this range tells of a failed tool call.",
)

DRIFT = Tile(
    "drift",
    "Drift",
    "Steps that name nothing of what people asked for and nothing of an open todo ÷ steps that can "
    "be judged. Found by rules; looking around counts as drift, too: compare it, do not read it as "
    "a share of wasted work.",
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
    "No task of this range names anything that a step could name again.",
)

SCHEMAS = Tile(
    "schemas",
    "Schema violations",
    "Tool calls whose input lacks a required field, has one that is not allowed, or one of another "
    "type ÷ calls of tools whose definition is known. A simple check: what it finds is wrong.",
    "measured",
    "checked",
    lambda: Q(assessment__checked_calls__gt=0),
    (
        Column("share", "Violations", "share", ratio("violations", "checked_calls")),
        Column("violations", "calls", "count", total("violations", "checked")),
        Column("checked", "checked", "count", total("checked_calls", "checked")),
    ),
    (
        ("unchecked", "whose log holds no tool definitions, or that call none of them"),
        ("not_assessed", "not assessed yet"),
    ),
    "No log of this range holds the definitions of the tools it calls.",
)

OUTCOMES = Tile(
    "outcomes",
    "Succeeded",
    "How sessions ended, as their agents say: succeeded ÷ those that say.",
    "measured",
    "told",
    lambda: ~Q(outcome=""),
    (
        Column("rate", "Succeeded", "share", ratio("succeeded", "told")),
        Column("succeeded", "succeeded", "count", total("succeeded")),
        Column("failed", "failed", "count", total("failed")),
        Column("abandoned", "abandoned", "count", total("abandoned")),
        Column("unknown", "unknown", "count", total("untold")),
    ),
    (("untold", "silent on how they ended"),),
    "No session of this range says how it ended: logs hold no outcome, agents may send one.",
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
        Column("all", "in all", "count", lambda sums: sum(sums.steps) if sums.steps else None),
    ),
    (("stepless", "without a model call"),),
)

TILES = (
    *(SPEND, AVOIDABLE, CACHE, WINDOW, COMPACTIONS, LEDGER),
    *(RECALL, REVIEWS, FAILURES, OUTCOMES, STEPS, DRIFT, SCHEMAS),
)  # fmt: skip

COUNTED: dict[str, Tile] = {tile.name: tile for tile in TILES}
"""By the name that an address says: a list of exactly the sessions that a tile counts."""
