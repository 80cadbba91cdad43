"""Remarks on budgets and on lists of tools."""

from __future__ import annotations

import pytest

from compaction.advice.use_lint import HOUR, IDS, budget_remarks, id_remarks, tool_remarks


@pytest.mark.parametrize(
    ("mode", "tokens", "answer"),
    [
        ("hard", 10_000, True),
        ("hard", 0, True),
        ("hard", 10_001, False),
        ("hard", None, False),
        ("soft", 10_000, False),
        ("approval", 1, False),
    ],
)
def test_a_small_hard_limit_gets_a_remark(mode: str, tokens: int | None, answer: bool) -> None:
    found = budget_remarks(mode, tokens)
    assert [one.severity for one in found] == ["warning"] * answer
    assert all("50,000" in one.text for one in found)


@pytest.mark.parametrize(
    ("times", "answer"),
    [
        ([], None),
        (range(IDS - 1), None),
        (range(IDS), IDS),
        (range(0, IDS * HOUR, HOUR), None),
        ([0, *range(HOUR + 1, HOUR + 1 + IDS)], IDS),
        ([5 * HOUR, *range(IDS), HOUR], IDS + 1),
    ],
)
def test_an_id_for_each_request_gets_a_remark(times: list[int], answer: int | None) -> None:
    found = id_remarks({"coder": times, "other": [1]})
    assert [one.severity for one in found] == ["warning"] * (answer is not None)
    assert all(f"coder started {answer} single-step sessions" in one.text for one in found)
    assert id_remarks({"": range(IDS)})[0].text.startswith("An agent without a name")


@pytest.mark.parametrize(("allowed", "answer"), [(0, False), (20, False), (21, True)])
def test_many_tools_get_a_remark(allowed: int, answer: bool) -> None:
    assert len(tool_remarks(allowed)) == answer
