"""Holders: which names nothing holds any more, and which of them a stub lists."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.facts.holders import LEAST_LISTED, Holders, _is_worth
from tests.build import Talk


def _talk(*texts: str) -> Talk:
    talk = Talk()
    for text in texts:
        talk.user(text)
    return talk


def _opened(talk: Talk) -> Holders:
    holders = Holders()
    for block in talk.blocks:
        holders.open(block)
    return holders


def test_listed_is_what_nothing_else_holds_and_once() -> None:
    talk = _talk("load_all save_all", "save_all and drop_all", "drop_all")
    first, second, third = talk.blocks
    holders = _opened(talk)
    assert holders.lists([(first, first)], 1) == {first.position: "load_all"}
    both = holders.lists([(first, first), (second, second)], 1)
    assert both == {first.position: "load_all save_all"}
    assert holders.lists([(third, third)], 1) == {}


def test_what_is_repeated_comes_first_and_what_is_long_or_a_number_never() -> None:
    talk = _talk("once_only twice_so twice_so 123456 " + "very_long_" * 4)
    (block,) = talk.blocks
    assert _opened(talk).lists([(block, block)], 1) == {block.position: "twice_so once_only"}


def test_names_fit_into_their_share() -> None:
    talk = _talk(" ".join(f"name_{number:04}" for number in range(500)))
    (block,) = talk.blocks
    listed = _opened(talk).lists([(block, block)], 0.001)[block.position]
    assert 0 < len(listed) < LEAST_LISTED


@given(st.lists(st.sampled_from(["name_one", "name_two name_one", "name_three", ""]), max_size=6))
def test_what_closes_leaves_no_trace(texts: list[str]) -> None:
    talk = _talk(*texts)
    holders = _opened(talk)
    for block in talk.blocks[1:]:
        holders.close(block)
    assert holders == _opened(_talk(*texts[:1]))


class Touched(dict[str, int]):
    """Counts that count how often they are asked and changed, and do not let anybody walk them."""

    times = 0

    def get(self, key: str, default: int = 0) -> int:  # type: ignore[override]
        self.times += 1
        return super().get(key, default)

    def __getitem__(self, key: str) -> int:
        self.times += 1
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: int) -> None:
        self.times += 1
        super().__setitem__(key, value)

    def __iter__(self) -> Never:
        raise AssertionError("all that stands is walked over")

    keys = values = items = __iter__  # type: ignore[assignment]


def _work(many: int, looked: list[int]) -> list[int]:
    """Operations that opening each of so many blocks takes, then listing and closing the last."""
    talk = _talk(*(f"load_{n} save_{n} shared_name" for n in range(many)))
    last, counts = talk.blocks[-1], Touched()
    holders = Holders(_counts=counts)
    acts: list[Callable[[], object]] = [partial(holders.open, block) for block in talk.blocks]
    acts += [partial(holders.lists, [(last, last)], 1), partial(holders.close, last)]
    spent = []
    for act in acts:
        before = len(looked) + counts.times
        act()
        spent.append(len(looked) + counts.times - before)
    return spent


def test_work_grows_with_a_block_and_not_with_what_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are facts that are looked at, and places of the counts that are touched."""
    looked: list[int] = []

    def worth(fact: str) -> bool:
        looked.append(1)
        return _is_worth(fact)

    monkeypatch.setattr("compaction.facts.holders._is_worth", worth)
    few, many = _work(40, looked), _work(400, looked)
    assert len({*few[:-2], *many[:-2]}) == 1, "each block costs what the first did"
    assert few[-2:] == many[-2:]
    assert min(few) > 0
