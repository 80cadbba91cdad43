"""Prices: integers, sources, tiers, dates, and never a made-up zero."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.session import Usage
from compaction.prices.prices import Price, cost, micros, minimum, nanos, price, window

FEBRUARY_2026 = 1_770_000_000_000
SEPTEMBER_2026 = 1_788_000_000_000


def listed(model: str, at: int | None = None) -> Price:
    found = price(model, at)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("model", "rates"),
    [
        ("claude-sonnet-5", (2000, 200, 2500, 4000, 10_000)),
        ("claude-opus-5-5", (4000, 200, 5000, 8000, 20_000)),
        ("claude-fable-5-1", (10_000, 250, 12_500, 20_000, 50_000)),
        ("claude-haiku-4-5-20251001", (1000, 100, 1250, 2000, 5000)),
        # No write fee before GPT-5.6: writes cost as much as uncached input.
        ("gpt-5", (1250, 125, 1250, 1250, 10_000)),
    ],
)
def test_rates_are_the_published_ones(model: str, rates: tuple[int, ...]) -> None:
    found = listed(model)
    assert (
        found.input,
        found.cache_read,
        found.cache_write_5m,
        found.cache_write_1h,
        found.output,
    ) == rates
    assert found.source.startswith("genai-prices 0.2")
    assert found.date


@pytest.mark.parametrize(
    "model",
    [
        "anthropic/claude-opus-4-6",
        "us.anthropic.claude-opus-4-6-v1:0",
        "claude-opus-4-6[1m]",
        "Claude-Opus-4-6",
        "claude-opus-4.6",
    ],
)
def test_a_model_is_known_by_its_names(model: str) -> None:
    assert listed(model).input == 5000
    assert minimum(model) == 4096
    assert window(model) == 1_000_000


@pytest.mark.parametrize("model", ["", "<synthetic>", "unknown-model", "/", "a" * 10_000])
def test_an_unknown_model_has_no_price(model: str) -> None:
    assert price(model) is None
    assert window(model) is None
    assert minimum(model) is None


def test_a_call_is_priced_at_its_own_time() -> None:
    before, after = (
        listed("claude-opus-4-6", FEBRUARY_2026),
        listed("claude-opus-4-6", SEPTEMBER_2026),
    )
    assert before.at(200_000).input == 5000
    assert before.at(200_001).input == 10_000
    assert before.at(200_001).cache_write_1h == 20_000
    assert after.above == ()
    assert after.date == "2026-03-13"


def test_the_tier_is_chosen_by_the_whole_prompt() -> None:
    haiku = listed("claude-haiku-5-5")
    small = Usage(uncached=0, cache_read=100_000, output=10)
    large = Usage(uncached=1, cache_read=100_000, output=10)
    assert nanos(small, haiku) == 100_000 * 10 + 10 * 500
    assert nanos(large, haiku) == 1 * 500 + 100_000 * 50 + 10 * 2500


def test_users_have_the_last_word() -> None:
    own = Price("house", 1, 1, 1, 1, 1, "our contract", "2026-01-01")
    assert price("house", overrides={"house": own}) is own
    assert price("claude-sonnet-5", overrides={"house": own}) == listed("claude-sonnet-5")
    assert window("house", {"house": 8192}) == 8192
    assert minimum("claude-sonnet-4-6", {"claude-sonnet-4-6": 2048}) == 2048


def test_own_table_fills_what_the_package_lacks() -> None:
    assert window("gemini-2.5-pro") == 1_048_576
    assert minimum("claude-opus-4-20250514") == 1024
    assert minimum("claude-opus-4-5-20251101") == 4096
    assert minimum("claude-opus-4-7") == 2048
    assert minimum("claude-opus-5-5") == 512


def test_cost_is_rounded_once_per_call() -> None:
    sonnet = listed("claude-sonnet-5")
    assert cost(Usage(), sonnet) == 0
    # 3 x 200 = 600 nano-dollars; rounding each part alone would give 3 x 0.
    assert cost(Usage(cache_read=3), sonnet) == 1
    assert cost(Usage(12_150, 0, 0, 0, 300), sonnet) == 12_150 * 2 + 3000
    assert [micros(n) for n in (499, 500, -499, -500)] == [0, 1, 0, -1]


@given(st.tuples(*[st.integers(0, 10**7)] * 5))
def test_cost_grows_with_every_part(parts: tuple[int, ...]) -> None:
    uncached, read, five, hour, output = parts
    whole = cost(Usage(uncached, read, five, hour, output), listed("claude-sonnet-5"))
    less = cost(Usage(uncached, read, five, hour, output // 2), listed("claude-sonnet-5"))
    assert 0 <= less <= whole


def test_prices_are_loaded_only_when_asked_for() -> None:
    code = "import sys, compaction.prices.prices; print('genai_prices' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_a_gateways_id_has_the_gateways_price() -> None:
    fast, usual = listed("anthropic/claude-opus-4.8-fast"), listed("claude-opus-4-8")
    assert (fast.input, fast.output) == (2 * usual.input, 2 * usual.output)
