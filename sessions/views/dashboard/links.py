"""Links from figures to the sessions and days they are made of."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from django.urls import reverse

from sessions.models.dashboard.slices import Split
from sessions.models.web.periods import Period
from sessions.views.web.filters import SessionFilters


def sessions_url(period: Period, split: Split, **narrowed: Any) -> str:
    """The URL of the session list for a period and split, with further filters."""
    wanted = SessionFilters(since=period.since, until=period.until, **asdict(split), **narrowed)
    return reverse("sessions") + wanted.address()


def part_days(since: int, until: int) -> dict[str, str]:
    """The days of [since, until) in ms, as query parameters of a range."""
    first, last = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (since, until - 1))
    return {"from": f"{first:%Y-%m-%d}", "to": f"{last:%Y-%m-%d}"}
