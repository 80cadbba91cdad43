"""Forecasts from the last prompts: steps to a limit, and use per minute."""

from __future__ import annotations

import pytest

from compaction.budget.growth import FARTHEST, STEPS, LimitForecast, UseRate, rate_of, steps_until


@pytest.mark.parametrize(
    ("sizes", "limit", "expected"),
    [
        ([100, 200, 300], None, None),
        ([], 1000, None),
        ([100, 200], 1000, None),
        ([100, 200, 300], 700, LimitForecast(4, 100, 700, 2)),
        ([100, 200, 300], 701, LimitForecast(5, 100, 701, 2)),
        ([300, 300, 300], 700, None),
        ([900, 850, 800], 1000, None),
        ([100, 200, 700], 700, LimitForecast(0, 0, 700, 2)),
        ([900], 700, LimitForecast(0, 0, 700, 0)),
        # After a compaction growth is counted from there; a small edit is part of the growth.
        ([500, 600, 100, 200, 300], 700, LimitForecast(4, 100, 700, 2)),
        ([500, 600, 100, 200], 700, None),
        ([500, 600, 590, 680], 800, LimitForecast(2, 60, 800, 3)),
        # Only the last steps count.
        ([0, *range(1000, 1000 + 10 * STEPS + 1, 10)], 1300, LimitForecast(10, 10, 1300, STEPS)),
        ([1, 2, 3], 3 + FARTHEST, LimitForecast(FARTHEST, 1, 3 + FARTHEST, 2)),
        ([1, 2, 3], 4 + FARTHEST, LimitForecast(FARTHEST + 1, 1, 4 + FARTHEST, 2)),
    ],
)  # fmt: skip
def test_steps_until(sizes: list[int], limit: int | None, expected: LimitForecast | None) -> None:
    assert (found := steps_until(sizes, limit)) == expected
    assert found is None or found.far == (found.steps > FARTHEST)


NOW = 1_000_000


@pytest.mark.parametrize(
    ("calls", "began", "expected"),
    [
        ([], 0, None),
        ([(NOW - 9_000, 50, 9), (NOW - 1, 50, 9)], NOW - 59_999, None),
        ([(NOW - 9_000, 50, 9), (NOW - 1, 50, 3)], NOW - 60_000, UseRate(100.0, 12.0, 2, 60_000)),
        ([(NOW - 300_000, 5, 9), (NOW - 299_999, 400, 4), (NOW, 100, 6)], 0,
         UseRate(100.0, 2.0, 2, 300_000)),
        ([(NOW - 1, 500, None)], 0, UseRate(100.0, None, 1, 300_000)),
    ],
    ids=["none", "too short", "since it began", "idle included", "no price"],
)  # fmt: skip
def test_rate_of(
    calls: list[tuple[int, int, int | None]], began: int, expected: UseRate | None
) -> None:
    assert rate_of(calls, began, NOW) == expected
