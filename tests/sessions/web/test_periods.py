"""Periods: start and end, parts, and comparison."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from sessions.models.web.periods import (
    DAY,
    HOUR,
    PARTS,
    RANGES,
    BadPeriod,
    asked_for,
    between,
    ending_now,
    month_of,
    of_all,
    read_time,
    written,
)


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1000


NOW = ms("2026-11-18 10:30")


@pytest.mark.parametrize(
    ("name", "since", "until", "parts", "before"),
    [
        ("24h", "2026-11-17 11:00", "2026-11-18 11:00", 24,
         ("2026-11-16 11:00", "2026-11-17 10:30")),
        ("7d", "2026-11-12 00:00", "2026-11-19 00:00", 7,
         ("2026-11-05 00:00", "2026-11-11 10:30")),
        ("30d", "2026-10-20 00:00", "2026-11-19 00:00", 30,
         ("2026-09-20 00:00", "2026-10-19 10:30")),
    ],
)  # fmt: skip
def test_a_range_ends_with_the_hour_or_day_that_is_under_way(
    name: str, since: str, until: str, parts: int, before: tuple[str, str]
):
    period = ending_now(name, NOW)
    assert (written(period.since), written(period.until)) == (
        written(ms(since)),
        written(ms(until)),
    )
    assert len(period.parts) == parts == period.earlier
    assert period.before == (ms(before[0]), ms(before[1]))


@pytest.mark.parametrize(
    ("days", "size", "parts"),
    [(1, HOUR, 24), (2, HOUR, 48), (3, DAY, 3), (62, DAY, 62), (63, 7 * DAY, 9),
     (434, 7 * DAY, 62), (435, 28 * DAY, 16), (1737, 364 * DAY, 5)],
)  # fmt: skip
def test_a_long_stretch_has_few_parts_and_each_day_is_in_one(days: int, size: int, parts: int):
    first = date(2021, 1, 1)
    period = between(first, date.fromordinal(first.toordinal() + days - 1))
    assert (period.size, len(period.parts)) == (size, parts)
    assert parts <= PARTS
    assert period.until - period.since == days * DAY
    assert period.before == (period.since - days * DAY, period.since)
    # Earlier sessions never fall into a part of the period, nor before the first part.
    assert period.origin <= period.before[0]
    assert (period.since - 1 - period.origin) // size == period.earlier - 1
    assert (period.last - period.origin) // size == period.earlier + parts - 1


def test_all_is_from_the_first_to_the_last_and_compared_with_nothing():
    period = of_all(ms("2026-11-01 13:00"), ms("2026-11-03 00:00"))
    assert (written(period.since), written(period.until)) == (
        "2026-11-01T00:00Z",
        "2026-11-04T00:00Z",
    )
    assert (period.before, period.earlier, len(period.parts)) == (None, 0, 3)


def test_an_address_names_a_range_or_two_days():
    assert asked_for({}, NOW, None, None) == ending_now("7d", NOW)
    assert asked_for({"range": "24h", "from": "2026-01-01"}, NOW, None, None).name == "24h"
    one = asked_for({"from": "2026-11-01"}, NOW, None, None)
    assert one == asked_for({"to": "2026-11-01"}, NOW, None, None)
    assert one == between(date(2026, 11, 1), date(2026, 11, 1))
    assert one == asked_for({"range": "custom", "to": "2026-11-01"}, NOW, None, None)
    everything = asked_for({"range": "all"}, NOW, ms("2026-11-10 00:00"), ms("2026-12-24 00:00"))
    assert written(everything.until) == "2026-12-25T00:00Z"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"range": "year"}, "range"),
        ({"range": "custom"}, "from"),
        ({"from": "yesterday"}, "from"),
        ({"from": "2026-11-31", "to": "2026-12-01"}, "from"),
        ({"from": "0001-01-01"}, "from"),
        ({"from": "2026-11-02", "to": "9999-12-31"}, "to"),
        ({"from": "2026-11-02", "to": "2026-11-01"}, "to"),
    ],
)
def test_what_is_no_range_says_which_field_and_why(query: dict[str, str], field: str):
    with pytest.raises(BadPeriod) as wrong:
        asked_for(query, NOW, None, None)
    assert wrong.value.field == field
    assert str(wrong.value).endswith(".")
    assert set(RANGES) == {"24h", "7d", "30d"}


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01T00:00Z", "2026-11-01T25:00"])
def test_what_is_no_time_is_none(text: str):
    assert read_time(text) is None


def test_a_time_in_an_address_is_read_as_it_was_written():
    assert written(NOW) == "2026-11-18T10:30Z"
    assert read_time(written(NOW)) == NOW
    assert read_time("2026-11-18") == ms("2026-11-18 00:00")


def test_what_is_left_of_a_month():
    begun, left = month_of(NOW)
    assert written(begun) == "2026-11-01T00:00Z"
    assert left == pytest.approx(30 - (17 + 10.5 / 24))


def test_all_ends_with_the_last_session():
    everything = asked_for({"range": "all"}, NOW, ms("2020-11-10 09:00"), ms("2020-11-20 09:00"))
    assert (written(everything.since), written(everything.until)) == (
        "2020-11-10T00:00Z",
        "2020-11-21T00:00Z",
    )
