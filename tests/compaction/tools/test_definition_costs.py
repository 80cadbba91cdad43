"""What tool definitions cost in the prompts that hold them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.context.session import Call, Usage
from compaction.prices import prices
from compaction.tools.definitions import Definition, ToolList, definition_costs

MODEL = "claude-sonnet-4-5"
READ, WRITE, HOUR, INPUT = 300, 3_750, 6_000, 3_000
"""Nano-dollars per token of that model."""
LIST = ToolList((Definition("a", 100), Definition("b", 50)), 1, 99)


def call(step: int, usage: Usage | None, at: int | None = None, model: str = MODEL) -> Call:
    return Call(step, model, at, usage)


def nanos(*calls: Call, lists: tuple[ToolList, ...] = (LIST,)) -> dict[str, int]:
    return {row.tool: row.nanos for row in definition_costs(lists, calls).rows}


def test_the_prices_are_those_of_the_list() -> None:
    listed = prices.price(MODEL)
    assert listed is not None
    rates = (listed.cache_read, listed.cache_write_5m, listed.cache_write_1h, listed.input)
    assert rates == (READ, WRITE, HOUR, INPUT)


@pytest.mark.parametrize(
    ("usage", "a", "b"),
    [
        (Usage(cache_write_5m=900), 100 * WRITE, 50 * WRITE),
        (Usage(cache_read=900), 100 * READ, 50 * READ),
        (Usage(cache_read=150, uncached=1), 100 * READ, 50 * READ),
        (Usage(uncached=900), 100 * INPUT, 50 * INPUT),
        (Usage(cache_write_1h=120, cache_write_5m=500), 100 * HOUR, 20 * HOUR + 30 * WRITE),
        (Usage(cache_read=30, uncached=900), 30 * READ + 70 * INPUT, 50 * INPUT),
        (Usage(cache_read=120, cache_write_5m=900), 100 * READ, 20 * READ + 30 * WRITE),
        (Usage(uncached=110), 100 * INPUT, 10 * INPUT),
        (Usage(), 0, 0),
    ],
)
def test_a_prompt_is_charged_in_order(usage: Usage, a: int, b: int) -> None:
    assert nanos(call(1, usage)) == {"a": a, "b": b}


def test_a_session_writes_once_reads_and_writes_again() -> None:
    calls = [
        call(1, Usage(cache_write_5m=1_000)),
        call(2, Usage(cache_read=1_000, cache_write_5m=10)),
        call(3, Usage(cache_write_5m=1_200)),
    ]
    found = definition_costs([LIST], calls)
    assert found.basis == "estimated" and found.priced
    assert [(row.tool, row.tokens, row.calls) for row in found.rows] == [
        ("a", 100, 3),
        ("b", 50, 3),
    ]
    assert found.nanos(["a"]) == 100 * (2 * WRITE + READ)
    assert found.nanos() == 150 * (2 * WRITE + READ)
    assert found.nanos([]) == 0


def test_lists_count_where_they_stand() -> None:
    later = ToolList((Definition("b", 60), Definition("c", 40)), 3, 4, before=1_000)
    calls = [call(step, Usage(cache_read=1_050, uncached=50)) for step in range(1, 6)]
    found = definition_costs([ToolList(LIST.tools, 1, 2), later], calls)
    assert {row.tool: (row.tokens, row.calls) for row in found.rows} == {
        "a": (100, 2),
        "b": (60, 4),
        "c": (40, 2),
    }
    assert found.nanos(["c"]) == 2 * 40 * INPUT
    assert found.nanos(["b"]) == 2 * 50 * READ + 2 * (50 * READ + 10 * INPUT)


def test_after_a_compaction_they_come_first() -> None:
    late = ToolList(LIST.tools, 1, 9, before=1_000)
    long, short = Usage(cache_read=1_000, uncached=500), Usage(cache_read=1_000, uncached=149)
    assert nanos(call(1, long), lists=(late,))["a"] == 100 * INPUT
    assert nanos(call(1, short), lists=(late,))["a"] == 100 * READ


MINUTE = 60_000


@pytest.mark.parametrize(
    ("model", "times", "charged"),
    [
        (MODEL, [0, 4 * MINUTE, 10 * MINUTE], [WRITE, READ, WRITE]),
        (MODEL, [0, None, None], [WRITE, READ, READ]),
        ("gpt-4.1", [0, MINUTE], [2_000, 500]),
    ],
)
def test_without_usage_the_pauses_decide(
    model: str, times: list[int | None], charged: list[int]
) -> None:
    calls = [call(step, None, at, model) for step, at in enumerate(times, start=1)]
    found = definition_costs([LIST], calls)
    assert found.basis == "simulated"
    assert found.nanos() == 150 * sum(charged)


def test_a_model_without_a_price_has_no_dollars() -> None:
    found = definition_costs([LIST], [call(1, Usage(uncached=200), model="no such model")])
    assert found.nanos() is None and found.rows[0].calls == 1


_USAGES = st.builds(Usage, *[st.integers(0, 400)] * 4)


@given(st.lists(_USAGES, max_size=6), st.lists(st.integers(0, 200), min_size=1, max_size=5))
def test_parts_add_up_to_the_whole(usages: list[Usage], sizes: list[int]) -> None:
    calls = [call(step, usage) for step, usage in enumerate(usages, start=1)]
    apart = ToolList(tuple(Definition(str(i), size) for i, size in enumerate(sizes)), 1, 99)
    whole = ToolList((Definition("all", sum(sizes)),), 1, 99)
    assert definition_costs([apart], calls).nanos() == definition_costs([whole], calls).nanos()
