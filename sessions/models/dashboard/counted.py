"""The counts and sums of a dashboard, by name."""

from __future__ import annotations

from django.db.models import F, Q, Value
from django.db.models.functions import Greatest

from sessions.models.record.sessions import COST_IS_BOUND

_PRICED = Q(cost_microusd__isnull=False)
_ASSESSED = Q(assessment__session__isnull=False)
_WINDOWED = Q(window__gt=0, peak_tokens__gt=0)
_SPLIT = Q(assessment__uncached_microusd__isnull=False)
_PARTIAL = Q(usage_calls__gt=0, usage_calls__lt=F("step_count"))

UNMANAGED = Q(policy_version=None)

TELL_NO_FAILURES = ("openai-messages", "anthropic-messages", "swe-agent-traj", "mini-swe-agent")
"""Formats that do not record which tool calls failed; Anthropic arrays may, with `is_error`."""

CONDITIONS: dict[str, Q] = {
    "sub_agents": ~Q(parent_external_id=""),
    "priced": _PRICED,
    "no_usage": Q(usage_calls=0),
    "no_price": Q(usage_calls__gt=0) & ~_PRICED,
    "partial": _PRICED & _PARTIAL,
    "understated": _PRICED & Q(cost_at_least=True),
    "short": COST_IS_BOUND,
    "forecast": Q(forecast_calls__gt=0),
    "hour": Q(assessment__hour_saved_microusd__isnull=False),
    "split_partial": _SPLIT & _PARTIAL,
    "split_short": _SPLIT & COST_IS_BOUND,
    "broken": Q(break_count__gt=0),
    "usage": Q(usage_calls__gt=0),
    "split": _SPLIT,
    "assessed": _ASSESSED,
    "windowed": _WINDOWED,
    "peak_counted": _WINDOWED & Q(peak_measured=False),
    "recalled": Q(assessment__needs__gt=0),
    "failed_calls": Q(assessment__failures__gt=0),
    "checked": Q(assessment__checked_calls__gt=0),
    "silent": Q(assessment__failures=0, source__in=TELL_NO_FAILURES),
    "compacted_in_log": Q(compaction_count__gt=0),
    "reported_outcome": ~Q(outcome=""),
    "succeeded": Q(outcome="succeeded"),
    "failed": Q(outcome="failed"),
    "abandoned": Q(outcome="abandoned"),
    "stepped": Q(step_count__gt=0),
    "compared": Q(assessment__lost_facts__isnull=False),
    "lost_facts_in": Q(assessment__lost_facts__gt=0),
    "unmanaged_lost": UNMANAGED & Q(assessment__lost_facts__gt=0),
}
"""The condition of each session count, by its name."""

SUMMED: dict[str, str | Greatest] = {
    "cost": "cost_microusd",
    "uncached": "uncached_tokens",
    "read": "cache_read_tokens",
    "write": "cache_write_tokens",
    "recorded": "compaction_count",
    "uncached_cost": "assessment__uncached_microusd",
    "write_cost": "assessment__write_microusd",
    "read_cost": "assessment__read_microusd",
    "output_cost": "assessment__output_microusd",
    "avoidable": "assessment__avoidable_microusd",
    "unexplained": "assessment__unexplained_microusd",
    "hour_saved": Greatest("assessment__hour_saved_microusd", Value(0)),
    "forecast_calls": "forecast_calls",
    "forecast_read": "forecast_tokens",
    "forecast_prompt": "forecast_prompt_tokens",
    "forecast_reported": "forecast_reported_tokens",
    "forecast_off": "forecast_off_tokens",
    "losses": "assessment__losses_microusd",
    "failures": "assessment__failures",
    "recovered": "assessment__recovered",
    "checked_calls": "assessment__checked_calls",
    "violations": "assessment__schema_violations",
    "needs": "assessment__needs",
    "in_context": "assessment__in_context",
    "named": "assessment__named",
    "retrievable": "assessment__retrievable",
    "lost": "assessment__lost",
    "lost_facts": "assessment__lost_facts",
}
"""The column of each sum, by its name; an hour's TTL counts where it saves."""

SUMMED_UNMANAGED: dict[str, str] = {
    "lost_unmanaged": "assessment__lost_facts",
    "losses_unmanaged": "assessment__losses_microusd",
}
"""The column of each sum over sessions without a policy, by its name."""

LEFT: dict[str, tuple[str, str]] = {
    "not_assessed": ("sessions", "assessed"),
    "without_outcome": ("sessions", "reported_outcome"),
    "stepless": ("sessions", "stepped"),
    "no_window": ("sessions", "windowed"),
    "not_recalled": ("assessed", "recalled"),
    "unfailed": ("assessed", "failed_calls"),
    "unchecked": ("assessed", "checked"),
}
"""Sums that are the difference of two others."""
