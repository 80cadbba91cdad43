"""Formatting of figures; `frontend/tests/web/format.test.ts` checks the browser's version."""

from __future__ import annotations

import pytest

from sessions.figures import UNKNOWN, change, finely, percent


@pytest.mark.parametrize(
    ("share", "coarse", "fine"),
    [
        (0, "0 %", "0 %"), (0.0004, "< 1 %", "< 0.1 %"), (0.004, "< 1 %", "0.4 %"),
        (0.5, "50 %", "50.0 %"), (0.994, "99 %", "99.4 %"), (0.996, "> 99 %", "99.6 %"),
        (0.99999, "> 99 %", "> 99.9 %"), (1, "100 %", "100 %"), (1.0004, "> 100 %", "> 100 %"),
        (1.2, "120 %", "120.0 %"), (None, UNKNOWN, "–"),
    ],
)  # fmt: skip
def test_all_of_it_alone_is_100_percent_and_none_of_it_alone_0(share, coarse, fine):
    assert (percent(share), finely(share)) == (coarse, fine)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (None, "–"), (0, "0 %"), (0.0004, "0 %"), (-0.049, "−4.9 %"), (0.21, "+21 %"),
        (8.9, "+890 %"), (9, "×10"), (20.62, "×22"), (400.9, "×402"), (40_089, "×40,090"),
        (-0.99, "−99 %"), (-1, "−100 %"),
    ],
)  # fmt: skip
def test_from_tenfold_on_a_change_is_a_factor(share, said):
    assert change(share) == said
