"""When an edit pays: the formulas of the worked cache example, case by case."""

from __future__ import annotations

import pytest

from compaction.cache.economy import (
    TTL_MS,
    Rates,
    TTLSetting,
    asked_for,
    cached_by,
    expected,
    granted,
    message_ttl,
    pays,
    rates_of,
    session_rates,
)
from compaction.context.session import Usage
from compaction.prices.prices import Price

SONNET = Price("m", 2_000, 200, 2_500, 4_000, 10_000, "test", "2026-01-01")


@pytest.mark.parametrize(
    ("read", "write", "factor"),
    [(100, 1_250, 11.5), (50, 1_250, 24), (25, 1_250, 49), (100, 1_000, 9), (100, 2_000, 19)],
)
def test_the_factor_of_each_price_list(read: int, write: int, factor: float) -> None:
    """docs/sources.md, Worked cache example: calls = rewritten / cleared x (w - r) / r."""
    rates = Rates(read, write)
    assert rates.rewriting / rates.read == factor
    assert pays(int(factor) + 1, 1_000, 1_000, rates)
    assert not pays(int(factor), 1_000, 1_000, rates)


def test_a_batch_of_five_pays_after_fifteen_calls_and_one_alone_after_seventy() -> None:
    """Rewritten 1.22 times the cleared tokens: 14.03 calls; one at a time 6.1 times: 70.15."""
    batch = 5 * (2_000 - 60)
    assert [pays(n, batch, round(1.22 * batch), Rates()) for n in (14, 15)] == [False, True]
    assert [pays(n, 2_000, 12_200, Rates()) for n in (70, 71)] == [False, True]


def test_what_rewrites_nothing_pays_at_once_and_what_clears_nothing_never() -> None:
    assert pays(1, 10, 0, Rates())
    assert not pays(1_000, 0, 1, Rates())


def test_rates_are_those_of_the_price_list() -> None:
    five, hour = rates_of(SONNET), rates_of(SONNET, "1h")
    assert (five.read, five.write, five.ttl, five.known) == (200, 2_500, 300_000, True)
    assert (hour.write, hour.ttl) == (4_000, TTL_MS["1h"])
    assert rates_of(SONNET, own=600_000).ttl == 600_000


def test_what_is_said_is_kept_as_the_policy_asks() -> None:
    asked = [message_ttl("recorded", "1h"), message_ttl("recorded"), message_ttl("mixed", "1h")]
    assert asked == ["1h", "5m", "5m"]
    assert (message_ttl("5m", "1h"), message_ttl("1h", "1h")) == ("5m", "1h")


@pytest.mark.parametrize(
    ("setting", "of_hour"),
    [("recorded", "1h"), ("5m", "5m"), ("1h", "1h"), ("mixed", "mixed")],
)
def test_no_setting_asks_for_longer_than_the_client(setting: TTLSetting, of_hour: str) -> None:
    assert granted(setting, "1h") == of_hour
    assert granted(setting, "5m") == "5m"


@pytest.mark.parametrize(
    ("model", "kept"),
    [
        ("gpt-5", 600_000),
        ("gpt-5.5", 24 * 3_600_000),
        ("gpt-5.6", 1_800_000),
        ("gemini-2.5-pro", 3_600_000),
        ("deepseek-chat", 3_600_000),
    ],
)
def test_who_decides_alone_is_not_asked_how_long_to_keep(model: str, kept: int) -> None:
    """docs/record/cache.md has the TTLs."""
    for ttl in ("recorded", "5m", "1h", "mixed"):
        assert session_rates(model, None, "1h", ttl).ttl == kept


def test_who_is_asked_keeps_as_the_policy_says() -> None:
    model = "claude-sonnet-4-5"
    lives = [session_rates(model, None, "1h", one) for one in ("recorded", "mixed", "5m", "1h")]
    assert [one.ttl for one in lives] == [TTL_MS[one] for one in ("1h", "5m", "5m", "1h")]
    assert lives[0].write > lives[1].write
    unknown = session_rates("no-such-model", None, "1h", "recorded")
    assert (unknown.known, unknown.ttl) == (False, TTL_MS["1h"])


def test_most_of_the_reported_writes_tell_what_a_session_asked_for() -> None:
    five, hour = Usage(cache_write_5m=10), Usage(cache_write_1h=15)
    assert [asked_for(one) for one in ([], [five], [five, hour], [five, five, hour])] == [
        "5m", "5m", "1h", "5m",
    ]  # fmt: skip


def test_a_price_tells_of_an_unknown_name_whether_prompts_are_kept() -> None:
    dear = Price("m", 2_000, 2_000, 2_000, 2_000, 10_000, "test", "2026-01-01")
    assert [cached_by("mine", one) for one in (SONNET, dear, None)] == ["prefix", "none", "unknown"]
    assert cached_by("gpt-5", dear) == "openai"


def test_a_session_is_reckoned_at_the_price_of_its_beginning() -> None:
    """o3 became cheaper in June 2025."""
    february = 1_738_800_000_000
    then, now = (session_rates("o3", at, "5m", "mixed") for at in (february, None))
    assert (then.write, now.write) == (10_000, 2_000)


def test_without_a_price_the_usual_ratios_stand_and_say_so() -> None:
    rates = rates_of(None, "1h")
    assert rates.rewriting / rates.read == 11.5
    assert (rates.known, rates.ttl) == (False, 3_600_000)


def test_a_session_is_taken_to_last_as_long_again() -> None:
    assert [expected(steps) for steps in (1, 20, 300)] == [1, 20, 300]
