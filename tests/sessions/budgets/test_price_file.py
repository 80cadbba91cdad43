"""The file of own prices that the environment names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compaction.prices import prices
from sessions.price_file import install_prices


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    yield
    prices.install({}, {}, {})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mine.toml", '[models."house"]\ninput = 2.0\noutput = 8\n'),
        ("mine.json", '{"models": {"house": {"input": 2.0, "output": 8}}}'),
    ],
)
def test_toml_or_json(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    install_prices(str(tmp_path / name))
    found = prices.price("house")
    assert found is not None
    assert (found.input, found.output, found.source) == (2000, 8000, f"own prices ({name})")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models.house]\ninput = 1\n", "models.house.output is required"),
        ("not = toml = at all", "cannot be read"),
    ],
)
def test_what_is_wrong_is_one_sentence_with_the_field(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"CONTEXTLAB_PRICES: .*{said}"):
        install_prices(str(file))


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        install_prices("/nowhere/mine.toml")
