"""Remarks on budgets and on lists of tools."""

from __future__ import annotations

import pytest

from compaction.use_lint import budget_remarks, tool_remarks


@pytest.mark.parametrize(
    ("mode", "tokens", "told"),
    [
        ("hard", 10_000, True),
        ("hard", 0, True),
        ("hard", 10_001, False),
        ("hard", None, False),
        ("soft", 10_000, False),
        ("approval", 1, False),
    ],
)
def test_a_small_hard_limit_is_told(mode: str, tokens: int | None, told: bool) -> None:
    found = budget_remarks(mode, tokens)
    assert [one.severity for one in found] == ["warning"] * told
    assert all("50,000" in one.text for one in found)


@pytest.mark.parametrize(("allowed", "told"), [(0, False), (20, False), (21, True)])
def test_many_tools_are_told(allowed: int, told: bool) -> None:
    assert len(tool_remarks(allowed)) == told
