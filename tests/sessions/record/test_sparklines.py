"""Sparklines and bars of the session list."""

from __future__ import annotations

import pytest

from sessions.views.web.sparklines import HEIGHT, bar, sparkline

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_a_sparkline_is_one_silhouette_per_kind_over_the_hidden_ground():
    columns = [[0] * 8 + [10, 0], [0] * 8 + [30, 0], [0] * 8 + [30, 0]]
    line = sparkline(columns, hidden=10, window=40, steps=9)
    assert [kind for kind, _ in line.paths] == ["result", "hidden"]
    top = dict(line.paths)["result"]
    assert top == f"M0 {HEIGHT}V24h1V0h2V{HEIGHT}z", "half of the window, then all of it twice"
    assert line.window == 0
    assert "peak 40 of 40" in line.label


def test_a_flat_sparkline_is_drawn_larger_and_without_a_window_it_does_not_reach():
    line = sparkline([[0] * 8 + [10, 0]], hidden=0, window=1000, steps=1)
    assert line.paths == (("result", f"M0 {HEIGHT}V{HEIGHT // 2}h1V{HEIGHT}z"),)
    assert line.window is None
    assert sparkline([], 0, None, 0).paths == ()


def test_a_bar_is_laid_end_to_end():
    segments = bar([250, *[0] * 8, 500], hidden=250, top=2000)
    assert [(s.kind, s.x, s.width) for s in segments] == [
        ("hidden", 0, 125),
        ("tools", 125, 125),
        ("other", 250, 250),
    ]
