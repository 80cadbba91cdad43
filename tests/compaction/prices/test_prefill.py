"""Which models refuse to go on from their own words."""

from __future__ import annotations

import pytest

from compaction.prices.prefill import refuses_prefill


@pytest.mark.parametrize(
    "model",
    ["claude-opus-4-6", "claude-sonnet-4-6", "anthropic/claude-opus-4.6",
     "claude-opus-4-8-20260528", "claude-sonnet-5", "claude-haiku-5-5", "claude-fable-5-1",
     "us.anthropic.claude-opus-4-6-v1"],
)  # fmt: skip
def test_claude_4_6_and_later_refuse(model: str) -> None:
    assert refuses_prefill(model)


@pytest.mark.parametrize(
    "model",
    ["claude-3-5-haiku-latest", "claude-3-opus-20240229", "claude-opus-4-20250514", "claude-opus-4",
     "claude-sonnet-4-5", "claude-haiku-4-5-20251001", "anthropic/claude-opus-4.1", "gpt-5.1", "",
     "claude-sonnet-4@20250514", "claude-2.1", "claude-instant-1.2"],
)  # fmt: skip
def test_earlier_and_other_models_do_not(model: str) -> None:
    assert not refuses_prefill(model)
