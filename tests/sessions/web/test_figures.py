"""Figures as pages write them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sessions import figures


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (figures.tokens(None), "unknown"),
        (figures.tokens(999), "999"),
        (figures.tokens(152_300), "152.3k"),
        (figures.tokens(999_949), "999.9k"),
        (figures.tokens(999_950), "1.00M"),
        (figures.tokens(24_816_900_000), "24.8G"),
        (figures.window(200_000), "200k"),
        (figures.window(1_000_000), "1M"),
        (figures.signed(-108_600), "−108.6k"),
        (figures.money(None), "unknown"),
        (figures.money(0), "$0"),
        (figures.money(57_500), "$0.058"),
        (figures.money(31_400_000), "$31.40"),
        (figures.money(1), "$0.000001"),
        (figures.percent(None), "unknown"),
        (figures.percent(0.001), "< 1 %"),
        (figures.percent(0.999), "> 99 %"),
        (figures.percent(1.0), "100 %"),
        (figures.duration(0.85), "850 ms"),
        (figures.duration(432), "7 m 12 s"),
        (figures.duration(11_100), "3 h 5 m"),
        (figures.size(640), "640 B"),
        (figures.size(3_100_000), "3.1 MB"),
        (figures.moment(10**20), None),
        (figures.ago(None), "unknown"),
        (figures.ago(datetime(2020, 8, 1, tzinfo=UTC)), "Aug 2020"),
        (figures.ago(datetime(9000, 1, 1, tzinfo=UTC)), "just now"),
    ],
)
def test_figures_are_written_for_people(written: str, text: str):
    assert written == text
