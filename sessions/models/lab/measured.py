"""What the logs of simulated sessions report: their usage as measured, beside simulated figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sessions.models.record.sessions import Session

_USAGE = ("uncached_tokens", "cache_read_tokens", "cache_write_tokens")


def measured_usage(
    sessions: Sequence[UUID], recorded: Iterable[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Reported prompt tokens of sessions and the share read from the cache, as on the dashboard;
    None if no call reported any. `tokens_at_least` if some calls did not, `cost_at_least` if the
    cost of some is unknown, `cost_measured` if none of the `recorded` figures has an estimated
    cost."""
    rows = list(
        Session.objects.filter(pk__in=sessions).only(
            *_USAGE, "usage_calls", "step_count", "cost_microusd", "cost_at_least"
        )
    )
    reported = [one for one in rows if one.usage_calls]
    tokens = sum(getattr(one, name) for one in reported for name in _USAGE)
    if not tokens:
        return None
    return {
        "sessions": len(reported),
        "tokens": tokens,
        "cache_read_share": sum(one.cache_read_tokens for one in reported) / tokens,
        "tokens_at_least": any(one.usage_calls < one.step_count for one in rows),
        "cost_measured": not any(
            one.get("cost_reported") is False and one.get("cost_microusd") is not None
            for one in recorded
        ),
        "cost_at_least": any(one.cost_microusd is None or one.cost_is_bound for one in rows),
    }
