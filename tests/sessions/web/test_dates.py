"""The date control of lists."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import pytest
from django.http import QueryDict

from sessions.models.web.periods import asked_for, written
from sessions.views.web.dates import date_control, dates_of
from sessions.views.web.filters import SessionFilters

NOW = int(datetime(2026, 3, 5, 13, 30, tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("name", "since", "until"),
    [
        ("today", "2026-03-05T00:00Z", "2026-03-06T00:00Z"),
        ("month", "2026-03-01T00:00Z", "2026-03-06T00:00Z"),
        ("last-month", "2026-02-01T00:00Z", "2026-03-01T00:00Z"),
    ],
)
def test_calendar_ranges(name: str, since: str, until: str):
    period = asked_for({"range": name}, NOW, None, None)
    assert (period.name, written(period.since), written(period.until)) == (name, since, until)


def test_last_month_of_january_is_in_the_year_before():
    january = int(datetime(2026, 1, 31, tzinfo=UTC).timestamp() * 1000)
    assert written(asked_for({"range": "last-month"}, january, None, None).since) == (
        "2025-12-01T00:00Z"
    )


@pytest.mark.parametrize(
    ("query", "pairs", "field"),
    [
        ("", (), None),
        ("range=all", (), None),
        ("range=7d", [("range", "7d")], None),
        ("from=2026-11-01&to=2026-11-02", [("from", "2026-11-01"), ("to", "2026-11-02")], None),
        ("from=2026-11-02&to=2026-11-01", (), "to"),
        ("from=soon", (), "from"),
        ("range=ever", (), "range"),
    ],
)
def test_a_range_is_read_or_refused(query: str, pairs: Any, field: str | None):
    found, period, wrong = dates_of(QueryDict(query))
    assert found == pairs
    assert (period is not None) == bool(pairs)
    assert (wrong.field if wrong else None) == field


def test_a_range_stays_relative_in_the_list_and_is_removed_whole():
    filters = SessionFilters.of(QueryDict("range=last-month&agent=scout"))
    assert filters.active and filters.since is not None and filters.until is not None
    assert filters.address() == "?agent=scout&range=last-month"
    assert filters.address(dates=(), since=None, until=None) == "?agent=scout"
    earlier = SessionFilters.of(QueryDict("since=2026-11-30T13:00Z"))
    assert earlier.address() == f"?since={quote('2026-11-30T13:00Z')}"


def test_presets_keep_other_filters_and_days_choose_none():
    query = QueryDict("from=2026-11-01&agent=scout")
    control = date_control(query, [("agent", "scout")], "", ("all", "All"))
    assert control.presets[0] == ("All", "?range=all&agent=scout", False)
    assert (control.since, control.until, control.custom) == ("2026-11-01", "", True)
    chosen = date_control(QueryDict("range=7d"), [], "7d", ("", "Any time"))
    assert [label for label, _, on in chosen.presets if on] == ["7 days"]
    assert chosen.presets[0] == ("Any time", "?", False)
