"""Prices of one's own: dollars in, nano-dollars out, and errors that name the field."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compaction.prices import prices
from compaction.prices.own_prices import InvalidPrices, own_prices
from compaction.prices.prices import Price

GIVEN = {
    "models": {
        "House-Model": {
            "input": 1.5,
            "cache_read": 0.15,
            "output": 6,
            "window": 64_000,
            "minimum": 256,
            "date": "2026-11-01",
        },
        "claude-opus-5": {"minimum": 2048},
    }
}


@pytest.fixture
def installed() -> Iterator[None]:
    own = own_prices(GIVEN, "own prices (mine.toml)")
    prices.install(own.prices, own.windows, own.minimums)
    yield
    prices.install({}, {}, {})


@pytest.mark.usefixtures("installed")
def test_they_go_before_what_is_listed() -> None:
    ours = Price("House-Model", 1500, 150, 1500, 1500, 6000, "own prices (mine.toml)", "2026-11-01")
    assert prices.price("house-model") == prices.price("gate/House-Model") == ours
    assert (prices.window("house-model"), prices.minimum("house-model")) == (64_000, 256)
    assert prices.minimum("claude-opus-5") == 2048
    listed = prices.price("claude-opus-5")
    assert listed is not None and listed.source.startswith("genai-prices")


def test_without_any_what_is_listed_stands() -> None:
    assert prices.price("house-model") is None and prices.minimum("claude-opus-5") == 512


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "models"),
        ({"models": []}, "models"),
        ({"models": {"m": 3}}, "models.m"),
        ({"models": {"m": {"inputs": 3}}}, "models.m.inputs"),
        ({"models": {"m": {"input": 3}}}, "models.m.output"),
        ({"models": {"m": {"input": -1, "output": 1}}}, "models.m.input"),
        ({"models": {"m": {"input": "1", "output": 1}}}, "models.m.input"),
        ({"models": {"m": {"input": float("nan"), "output": 1}}}, "models.m.input"),
        ({"models": {"m": {"input": True, "output": 1}}}, "models.m.input"),
        ({"models": {"m": {"window": 1.5}}}, "models.m.window"),
        ({"models": {"m": {"minimum": -1}}}, "models.m.minimum"),
    ],
)
def test_errors_name_the_field(document: object, field: str) -> None:
    with pytest.raises(InvalidPrices) as found:
        own_prices(document, "x")
    assert found.value.field == field
