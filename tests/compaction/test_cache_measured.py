"""Breaks read from reported usage: found, named, and never at odds with what was reported."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.measured import measured
from compaction.cache.simulator import CacheUse
from compaction.edits import Edit, Revision
from compaction.prices import Price, micros, nanos
from compaction.session import Call, Usage

SONNET = Price("claude-sonnet-5", 2000, 200, 2500, 4000, 10_000, "test", "2026-11-20")
MINUTE = 60_000


def cause(use: CacheUse) -> str | None:
    return use.broken.cause if use.broken else None


def priced(_model: str, _at: int | None) -> Price:
    return SONNET


def call(step: int, minutes: float, usage: Usage | None, model: str = "m") -> Call:
    return Call(step, model, int(minutes * MINUTE), usage)


def test_measured_breaks_are_named() -> None:
    calls = [
        call(1, 0, Usage(10, 20_000, 30_000, 0, 500)),
        call(2, 1, Usage(10, 50_000, 2_000, 0, 500)),
        call(3, 9.2, Usage(10, 20_000, 34_000, 0, 500)),
        call(4, 10, None),
        call(5, 11, Usage(10, 20_000, 9_000, 0, 500)),
        call(6, 12, Usage(10, 0, 30_000, 0, 500), "other"),
        call(7, 13, Usage(10, 0, 31_000, 0, 500), "other"),
        call(8, 14, Usage(10, 30_500, 900, 0, 500), "other"),
    ]
    uses = measured(calls, [Revision(3, 4, "auto", (), 0, 0)], priced)
    assert [(use.step, cause(use)) for use in uses] == [
        (1, "cold_start"),
        (2, None),
        (3, "lifetime"),
        (5, "edit"),
        (6, "model"),
        (7, "unexplained"),
        (8, None),
    ]
    assert str(uses[2].broken) == "lifetime ran out (idle 8 m 12 s)"
    assert uses[2].expected == 0
    assert uses[3].broken and uses[3].broken.revision == 3
    assert uses[3].broken.rewritten == 9_010
    assert all(use.basis == "measured" for use in uses)
    assert uses[1].cost == micros(10 * 2000 + 50_000 * 200 + 2_000 * 2500 + 500 * 10_000)


def test_the_lifetime_is_the_one_that_usage_shows() -> None:
    hour = [call(1, 0, Usage(0, 0, 0, 40_000)), call(2, 30, Usage(0, 0, 0, 41_000))]
    assert [cause(use) for use in measured(hour)] == ["cold_start", "unexplained"]
    five = [call(1, 0, Usage(0, 0, 10, 40_000)), call(2, 30, Usage(0, 0, 0, 41_000))]
    assert [cause(use) for use in measured(five)] == ["cold_start", "lifetime"]


def test_an_automatic_cache_keeps_the_whole_prompt() -> None:
    calls = [call(1, 0, Usage(20_000)), call(2, 1, Usage(1_000, 19_968)), call(3, 2, Usage(22_000))]
    uses = measured(calls)
    assert [use.expected for use in uses] == [None, 20_000, 20_968]
    assert [cause(use) for use in uses] == ["cold_start", None, "unexplained"]
    assert [use.cost for use in uses] == [None, None, None]


def test_without_a_read_or_a_write_there_is_no_cache_to_break() -> None:
    fresh = [Usage(20_000), Usage(30_000), Usage(40_000)]
    plain = measured(call(step, step, usage) for step, usage in enumerate(fresh, 1))
    assert [(use.expected, cause(use)) for use in plain] == [
        (None, "cold_start"),
        (None, None),
        (None, None),
    ]
    for begun in (Usage(100, 39_900), Usage(100, 0, 40_000)):  # read at last; turned on at last
        calls = [*fresh, begun, Usage(41_000)]
        uses = measured(call(step, step, usage) for step, usage in enumerate(calls, 1))
        assert [cause(use) for use in uses[1:]] == [None, None, None, "unexplained"]
        assert uses[3].expected == (40_000 if begun.cache_read else None)


USAGES = st.builds(Usage, *[st.integers(0, 10**6)] * 5)


@given(st.lists(st.tuples(st.floats(0, 100), USAGES | st.none()), max_size=10))
def test_usage_wins(reported: list[tuple[float, Usage | None]]) -> None:
    calls = [call(step, minutes, usage) for step, (minutes, usage) in enumerate(reported, 1)]
    uses = measured(calls, (), priced)
    told = [usage for _, usage in reported if usage is not None]
    assert [use.prompt for use in uses] == [usage.prompt for usage in told]
    for use, usage in zip(uses, told, strict=True):
        assert use.cost == micros(nanos(usage, SONNET))
        assert use.broken is None or 0 <= use.broken.rewritten <= use.prompt - use.read


def test_other_tools_and_another_system_prompt_are_named() -> None:
    def setup(number: int, step: int, what: str) -> Revision:
        return Revision(number, step, "setup", (Edit(what, (), None, ""),), 0, 0)

    usages = [Usage(10, 0, 30_000), *[Usage(10, 0, 31_000)] * 3]
    calls = [call(step, step, usage) for step, usage in enumerate(usages, start=1)]
    uses = measured(
        calls,
        [
            setup(1, 2, "tools"),
            setup(2, 2, "system"),
            setup(3, 3, "system"),
            Revision(4, 3, "rewind", (), 0, 0),
            Revision(5, 4, "rewind", (), 0, 0),
        ],
    )
    assert [cause(use) for use in uses] == ["cold_start", "tools", "system", "rewind"]
    assert [use.broken.revision for use in uses[1:] if use.broken] == [1, 3, 5]
