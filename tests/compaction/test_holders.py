"""Holders: which names nothing holds any more, and which of them a stub lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.facts.holders import LEAST_LISTED, Holders
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
    assert _opened(talk).lists([(block, block)], 0) == {}


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
