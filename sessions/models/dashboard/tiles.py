"""The figures of a team's dashboard: which sessions each tile counts, how, and what it excludes."""

from __future__ import annotations

from collections.abc import Callable

from django.db.models import Q

from sessions.models.cache.causes import AVOIDABLE as MEANING
from sessions.models.dashboard.counted import CONDITIONS
from sessions.models.dashboard.matching import NEAR_LIMIT
from sessions.models.dashboard.quality_tiles import (
    FAILURES,
    LEDGER,
    RECALL,
    REVIEWS,
    SCHEMAS,
)
from sessions.models.web.sums import Column, Sums, Tile, Value, ratio, total


def _peak(sums: Sums, share: float) -> Value:
    permille = sums.peaks.quantile(share)
    return None if permille is None else permille / 1000


def _near(sums: Sums) -> Value:
    return sums.peaks.at_least(1000 * NEAR_LIMIT) if sums.peaks else None


def _steps(sums: Sums) -> Value:
    return sums.steps.sum if sums.steps else None


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
    f"{MEANING} Unexplained: the same for breaks whose cause no log shows. Both are "
    "included in cache write and uncached.",
    "measured",
    "split",
    lambda: Q(assessment__uncached_microusd__isnull=False),
    (
        Column("avoidable", "Avoidable", "microusd", _assessed("avoidable"), "avoidable_short"),
        Column(
            "unexplained", "unexplained", "microusd", _assessed("unexplained"), "avoidable_short"
        ),
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
        Column("p90", "90th percentile", "share", lambda sums: _peak(sums, 0.9)),
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
        Column("median", "Median", "count", lambda sums: sums.steps.quantile(0.5)),
        Column("p90", "90th percentile", "count", lambda sums: sums.steps.quantile(0.9)),
        Column("all", "total", "count", _steps),
    ),
    (("stepless", "without a model call"),),
)

TILES = (
    *(SPEND, AVOIDABLE, CACHE, WINDOW, COMPACTIONS, LEDGER),
    *(RECALL, REVIEWS, FAILURES, OUTCOMES, STEPS, SCHEMAS),
)  # fmt: skip

LOST = Tile(
    "lost",
    "Facts lost without a policy",
    "Sessions without a policy in which a lost fact was needed again.",
    "estimated",
    "unmanaged_lost",
    lambda: CONDITIONS["unmanaged_lost"],
    (),
)
"""No figure of its own: what the dashboard's advice counts."""

COUNTED: dict[str, Tile] = {tile.name: tile for tile in (*TILES, LOST)}
"""Tiles by name, as used in URLs: filters the session list to the sessions a tile counts."""
