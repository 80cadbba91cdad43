"""Fixtures that tests of this folder share."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sessions.models import Session
from tests.sessions.dashboard.dashboards import assessed, made
from tests.sessions.pages import other_team
from tests.sessions.web.test_periods import ms


@pytest.fixture
def five() -> dict[str, Session]:
    """Two of this week, one without times, one of the week before, and one of no week; and one of
    a foreign team."""
    priced = made(
        "priced", "2026-11-17 12:00", cost_microusd=2_000_000, usage_calls=4, step_count=4,
        uncached_tokens=100, cache_read_tokens=700, cache_write_tokens=200, window=1000,
        peak_tokens=500, peak_measured=True, compaction_count=2, outcome="succeeded",
    )  # fmt: skip
    assessed(
        priced, uncached_microusd=400_000, write_microusd=600_000, read_microusd=500_000,
        output_microusd=500_000, avoidable_microusd=300_000, unexplained_microusd=70_000,
        failures=2, recovered=1,
        needs=10, in_context=6, named=1, retrievable=2, lost=1, lost_facts=1,
        checked_calls=5, schema_violations=1,
    )  # fmt: skip
    silent = made(
        "silent", "2026-11-18 01:00", step_count=2, window=1000, peak_tokens=900,
        parent_external_id="priced",
    )  # fmt: skip
    timeless = made("timeless", None, usage_calls=3, step_count=3, uncached_tokens=1000)
    at = datetime.fromtimestamp(ms("2026-11-15 08:00") / 1000, UTC)
    Session.objects.filter(pk=timeless.pk).update(created=at)
    assessed(timeless, failures=0)
    earlier = made(
        "earlier", "2026-11-10 12:00", cost_microusd=1_000_000, usage_calls=1, step_count=2,
        uncached_tokens=50, cache_read_tokens=50, outcome="failed",
    )  # fmt: skip
    # Later in the previous week than it is now in this one: not comparable yet.
    neither = made("neither", "2026-11-11 12:00", cost_microusd=9_000_000, usage_calls=1)
    made("foreign", "2026-11-17 12:00", other_team(), cost_microusd=7_000_000, usage_calls=1)
    return {
        "priced": priced, "silent": silent, "timeless": timeless, "earlier": earlier,
        "neither": neither,
    }  # fmt: skip
