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


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], None),
        ([(0, 50, 9)], None),
        ([(5, 50, 9), (5, 50, 9)], None),
        ([(0, 1000, 9), (30_000, 50, 4), (120_000, 150, 6)], UseRate(100.0, 5.0, 2, 120_000)),
        ([(0, 1000, 9), (60_000, 50, None)], UseRate(50.0, None, 1, 60_000)),
        ([(0, 1000, 9), (None, 50, 4), (30_000, None, 4), (60_000, 70, 4)],
         UseRate(70.0, 4.0, 1, 60_000)),
    ],
)  # fmt: skip
def test_rate_of(
    calls: list[tuple[int | None, int | None, int | None]], expected: UseRate | None
) -> None:
    assert rate_of(calls) == expected
