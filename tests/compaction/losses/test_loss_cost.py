"""The cost of a loss: a text costs no more than its compaction, which costs no more than all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.blocks import FileRef
from compaction.context.edits import Entry
from compaction.context.session import Call, Usage
from compaction.losses.loss_cost import (
    CameAgain,
    LossCost,
    PaidStep,
    came_again,
    loss_cost,
    paid_step,
)
from compaction.losses.repairs import WINDOW, repairs
from compaction.prices.prices import Price
from tests.build import Talk

TEXTS = ("one\ntwo\nthree", "two\nthree\nfour", "fatal: no such file", "x")
PEOPLE = ("Go on.", "No, that is wrong.")
Run = tuple[list[Entry], dict[int, int]]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A session of reads, searches and edits that some revisions removed from its context."""
    talk = Talk()
    talk.user("Go.")
    for _ in range(draw(st.integers(2, 14))):
        talk.respond()
        tool = draw(st.sampled_from(("Read", "Grep", "Edit", "read_back")))
        path = draw(st.sampled_from("ab"))
        action = {"Read": "read", "Edit": "edit"}.get(tool)
        file = FileRef(path, action) if action else None  # type: ignore[arg-type]
        asked = (
            {"ref": draw(st.sampled_from(["b2", "b4"]))} if tool == "read_back" else {"of": path}
        )
        use = talk.call(tool, asked, file=file)
        talk.result(use, draw(st.sampled_from(TEXTS)), error=draw(st.booleans()))
        if draw(st.integers(0, 3)) == 0:
            talk.user(draw(st.sampled_from(PEOPLE)))
    steps = draw(st.lists(st.integers(2, talk.step + 1), unique=True, max_size=4))
    removals = dict(enumerate(sorted(steps), start=1))
    entries = []
    for block in talk.blocks:
        later = [one for one, step in removals.items() if step >= block.born]
        closed = draw(st.sampled_from([None, *later]))
        entries.append(Entry(block, block.born, removals.get(closed or 0), closed_by=closed))
    return entries, removals


PAID = st.builds(
    PaidStep,
    st.none() | st.integers(0, 500),
    st.integers(0, 200),
    st.integers(0, 90_000),
    st.integers(0, 9_000),
)
CALLS = st.dictionaries(st.integers(1, 16), PAID, max_size=16)


@given(run=runs(), paid=CALLS)
def test_a_text_costs_no_more_than_its_revision_and_that_no_more_than_the_session(
    run: Run, paid: dict[int, PaidStep]
) -> None:
    entries, removals = run
    whole = repairs(entries, removals)
    of_all, results = {one.step for one in whole}, list(came_again(whole))
    session = loss_cost(of_all, paid, results)
    assert (session.microusd or 0) <= sum(one.unbroken for one in paid.values())
    for number, step in removals.items():
        found = repairs(entries, {number: step})
        assert len({one.block.id for one in found}) == len(found), "each call once"
        of_one = {one.step for one in found}
        assert of_one <= of_all and all(step <= one < step + WINDOW for one in of_one)
        again = list(came_again(found))
        assert set(again) <= set(results)
        revision = loss_cost([one.step for one in found], paid, again)
        for missing in of_one:
            text = loss_cost([missing, missing], paid, again)
            assert (text.microusd or 0) <= (revision.microusd or 0) <= (session.microusd or 0)


@given(
    steps=st.lists(st.integers(1, 16), max_size=8),
    held=st.integers(0, 8),
    paid=CALLS,
    of=st.data(),
)
def test_what_came_again_costs_what_each_prompt_paid_for_it(
    steps: list[int], held: int, paid: dict[int, PaidStep], of: st.DataObject
) -> None:
    again = []
    for step in steps:
        until = of.draw(st.none() | st.integers(step + 1, 20))
        again.append(CameAgain(step, of.draw(st.integers(1, 400)), step + 1, until))
    expected = {}
    for step in sorted(set(range(1, 17)) - set(steps)):
        here = [one for one in again if one.since <= step < (one.until or 99) or one.since == step]
        call = paid.get(step)
        if here and call is not None and call.cost is not None:
            rates = [call.new if one.since == step else call.held for one in here]
            asked = sum(one.tokens * rate for one, rate in zip(here, rates, strict=True))
            expected[step] = min(asked, call.unbroken * 1000)
    found = loss_cost(steps, paid, again)
    assert found.carried == (sum(expected.values()) + 500) // 1000
    assert (found.carriers, found.tokens) == (len(expected), sum(one.tokens for one in again))
    fewer = loss_cost(steps[:held], paid, again)
    assert (fewer.microusd or 0) <= (found.microusd or 0)


@pytest.mark.parametrize(
    ("steps", "cost"),
    [
        ([], LossCost((), 0)),
        ([4, 2, 4], LossCost((2, 4), 70)),
        ([2, 3], LossCost((2, 3), 50, at_least=True)),
        ([3], LossCost((3,), None, at_least=True)),
        ([9], LossCost((9,), None, at_least=True)),
    ],
)
def test_each_step_counts_once_and_without_its_cache_break(
    steps: list[int], cost: LossCost
) -> None:
    paid = {2: PaidStep(50), 3: PaidStep(None), 4: PaidStep(100, 80), 5: PaidStep(None, 7)}
    assert loss_cost(steps, paid) == cost


def test_a_repair_at_the_next_step_pays_for_a_result_only_once() -> None:
    paid = {step: PaidStep(900, 0, 3000, 300) for step in range(1, 6)}
    result = CameAgain(step=1, tokens=100, since=2)
    assert loss_cost([1], paid, [result]) == LossCost(
        (1,), 900, tokens=100, carried=390, carriers=4
    )
    both = loss_cost([1, 2], paid, [result, CameAgain(step=2, tokens=10, since=3, until=4)])
    assert both == LossCost((1, 2), 1800, tokens=110, carried=120, carriers=3)


PRICE = Price("m", 3000, 300, 3750, 6000, 15000, "test", "2026-01-01")


@pytest.mark.parametrize(
    ("usage", "broken", "new", "held"),
    [
        (Usage(cache_read=9000, cache_write_5m=500), 0, 3750, 300),
        (Usage(cache_read=9000, cache_write_1h=500), 0, 6000, 300),
        (Usage(uncached=500, cache_read=9000, cache_write_5m=500), 0, 3375, 300),
        (Usage(uncached=9500), 0, 3000, 3000),
        (Usage(cache_write_5m=9500), 40, 3750, 300),
        (Usage(cache_read=9000), 0, 3000, 300),
        (None, 0, 0, 0),
    ],
)
def test_a_token_costs_what_the_call_paid_for_new_and_for_cached_ones(
    usage: Usage | None, broken: int, new: int, held: int
) -> None:
    assert paid_step(Call(1, "m", usage=usage), PRICE, 70, broken) == PaidStep(
        70, broken, new, held
    )
