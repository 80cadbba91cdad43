"""Breaks read from reported usage: found, named, and never at odds with what was reported."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.calibrate import ForecastSums, compare
from compaction.cache.forecast import ForecastState, Moment, PromptChange, whole_change
from compaction.cache.measured import follow, measured
from compaction.cache.uses import CacheUse
from compaction.context.session import Call, Iteration, Usage, of_iterations
from compaction.prices.prices import Price, micros, nanos

SONNET = Price("claude-sonnet-5", 2000, 200, 2500, 4000, 10_000, "test", "2026-11-20")
MINUTE = 60_000


def cause(use: CacheUse) -> str | None:
    return use.broken.cause if use.broken else None


def priced(_model: str, _at: int | None) -> Price:
    return SONNET


def call(step: int, minutes: float, usage: Usage | None, model: str = "m") -> Call:
    return Call(step, model, int(minutes * MINUTE), usage)


def plain(calls: Iterable[Call], **changes: tuple[PromptChange, ...]) -> list[tuple[Call, Moment]]:
    """Calls of prompts that only grow, but for changes by step as `s3=…`."""
    return [
        (one, Moment(one.step, one.model, one.at, one.step * 2, changes.get(f"s{one.step}", ())))
        for one in calls
    ]


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
    uses = measured(plain(calls, s4=(PromptChange("edit", 1, 3),)), priced)
    assert [(use.step, cause(use)) for use in uses] == [
        (1, "cold_start"),
        (2, None),
        (3, "ttl"),
        (5, "edit"),
        (6, "model"),
        (7, "unexplained"),
        (8, None),
    ]
    assert str(uses[2].broken) == "TTL expired (idle 8 m 12 s)"
    assert uses[2].expected == 0
    assert uses[3].broken and uses[3].broken.revision == 3
    assert uses[3].broken.rewritten == 9_010
    assert all(use.basis == "measured" for use in uses)
    assert uses[1].cost == micros(10 * 2000 + 50_000 * 200 + 2_000 * 2500 + 500 * 10_000)


def test_a_change_that_should_lose_little_is_named_when_much_was_lost() -> None:
    calls = [call(1, 0, Usage(0, 49_000, 1_000)), call(2, 1, Usage(0, 0, 51_000))]
    uses = measured(plain(calls, s2=(PromptChange("edit", 1, 7),)))
    assert cause(uses[1]) == "edit" and uses[1].broken and uses[1].broken.revision == 7
    # Behind what the call before sent there was nothing to lose.
    assert cause(measured(plain(calls, s2=(PromptChange("edit", 2),)))[1]) == "unexplained"


def test_a_restart_that_only_habit_tells_of_is_said_to_be_probable() -> None:
    known, said = ForecastState(), []
    for step in range(1, 8):
        lost = step % 2 == 1
        one = call(step, step, Usage(3, 0, 40_000 + step) if lost else Usage(3, 40_000, 500))
        use = follow(known, Moment(step, "m", one.at, step * 2, human=lost, wrote=True), one)
        said.append(str(use.broken) if use and use.broken else None)
    assert said[2::2] == ["unexplained", "unexplained", "client restarted, probably"]


def test_an_entry_that_expired_just_after_its_ttl_is_named_so() -> None:
    for seconds, kept in ((299, "unexplained"), (305, "TTL expired (idle 5 m 5 s)")):
        calls = [call(1, 0, Usage(0, 0, 40_000)), call(2, seconds / 60, Usage(0, 0, 41_000))]
        assert str(measured(plain(calls))[1].broken) == kept


def test_the_ttl_is_the_one_that_usage_shows() -> None:
    hour = [call(1, 0, Usage(0, 0, 0, 40_000)), call(2, 30, Usage(0, 0, 0, 41_000))]
    assert [cause(use) for use in measured(plain(hour))] == ["cold_start", "unexplained"]
    five = [call(1, 0, Usage(0, 0, 10, 40_000)), call(2, 30, Usage(0, 0, 0, 41_000))]
    assert [cause(use) for use in measured(plain(five))] == ["cold_start", "ttl"]


def test_an_automatic_cache_keeps_the_whole_prompt() -> None:
    calls = [call(1, 0, Usage(20_000)), call(2, 1, Usage(1_000, 19_968)), call(3, 2, Usage(22_000))]
    uses = measured(plain(calls))
    assert [use.expected for use in uses] == [None, 20_000, 20_968]
    assert [cause(use) for use in uses] == ["cold_start", None, "unexplained"]
    assert [use.cost for use in uses] == [None, None, None]


def test_without_a_read_or_a_write_there_is_no_cache_to_break() -> None:
    fresh = [Usage(20_000), Usage(30_000), Usage(40_000)]
    uses = measured(plain(call(step, step, usage) for step, usage in enumerate(fresh, 1)))
    assert [(use.expected, cause(use)) for use in uses] == [
        (None, "cold_start"),
        (None, None),
        (None, None),
    ]
    for begun in (Usage(100, 39_900), Usage(100, 0, 40_000)):  # read at last; turned on at last
        calls = [*fresh, begun, Usage(41_000)]
        uses = measured(plain(call(step, step, usage) for step, usage in enumerate(calls, 1)))
        assert [cause(use) for use in uses[1:]] == [None, None, None, "unexplained"]
        assert uses[3].expected == (40_000 if begun.cache_read else None)


def test_a_shorter_prompt_that_was_read_pays_nothing_again() -> None:
    calls = plain([call(1, 0, Usage(0, 0, 90_000)), call(2, 1, Usage(3, 60_000, 900))])
    assert cause(measured(calls)[1]) is None
    sums = ForecastSums()
    sums.add(compare(calls, {1: 90_000, 2: 60_903}))
    answer = sums.as_dict()
    assert (answer["breaks"], answer["breaks_that_paid_nothing"]) == (1, 1)
    cause_row = answer["causes"]["unexplained"]
    assert (cause_row["missed"], cause_row["paid"], cause_row["cost_microusd"]) == (1, 0, 0)


USAGES = st.builds(Usage, *[st.integers(0, 10**6)] * 5)
CHANGES = st.lists(
    st.builds(PromptChange, st.sampled_from(["edit", "settings"]), st.integers(-1, 9))
)
CALLS = st.lists(st.tuples(st.floats(0, 100), USAGES | st.none(), CHANGES), max_size=10)


@given(CALLS)
def test_usage_wins(reported: list[tuple[float, Usage | None, list[PromptChange]]]) -> None:
    calls = [call(step, minutes, usage) for step, (minutes, usage, _) in enumerate(reported, 1)]
    changes = {f"s{step}": tuple(found) for step, (_, _, found) in enumerate(reported, 1)}
    uses = measured(plain(calls, **changes), priced)
    answer = [usage for _, usage, _ in reported if usage is not None]
    assert [use.prompt for use in uses] == [usage.prompt for usage in answer]
    for use, usage in zip(uses, answer, strict=True):
        assert use.cost == micros(nanos(usage, SONNET))
        assert use.broken is None or 0 <= use.broken.rewritten <= use.prompt - use.read
        assert use.forecast is None or 0 <= use.forecast <= use.prompt


@given(CALLS)
def test_pages_and_calibrate_name_the_same_causes(
    reported: list[tuple[float, Usage | None, list[PromptChange]]],
) -> None:
    calls = [call(step, minutes, usage) for step, (minutes, usage, _) in enumerate(reported, 1)]
    changes = {f"s{step}": tuple(found) for step, (_, _, found) in enumerate(reported, 1)}
    given_calls = plain(calls, **changes)
    compared = compare(given_calls, dict.fromkeys(range(1, 11), 1_000))
    assert all(0 <= one.informed <= one.prompt for one in compared)
    answer = {one.step: one.cause for one in compared if one.paid}
    shown = {use.step: cause(use) for use in measured(given_calls)}
    assert answer == {step: one for step, one in shown.items() if one not in (None, "cold_start")}


def test_other_tools_and_another_system_prompt_are_named() -> None:
    usages = [Usage(10, 0, 30_000), *[Usage(10, 0, 31_000)] * 3]
    calls = [call(step, step, usage) for step, usage in enumerate(usages, start=1)]
    uses = measured(
        plain(
            calls,
            s2=(whole_change("tools", 1), whole_change("system", 2)),
            s3=(whole_change("system", 3), PromptChange("rewind", 0, 4)),
            s4=(PromptChange("rewind", 0, 5),),
        )
    )
    assert [cause(use) for use in uses] == ["cold_start", "tools", "system", "rewind"]
    assert [use.broken.revision for use in uses[1:] if use.broken] == [1, 3, 5]


def test_an_expired_ttl_at_an_edit_says_so() -> None:
    calls = [
        call(1, 0, Usage(10, 0, 50_000, 0, 500)),
        call(2, 1, Usage(10, 50_000, 2_000, 0, 500)),
        call(3, 9.2, Usage(10, 0, 20_000, 0, 500)),
        call(4, 19, Usage(10, 0, 22_000, 0, 500)),
    ]
    uses = measured(plain(calls, s3=(PromptChange("edit", 1, 3),)), priced)
    breaks = [use.broken for use in uses[2:]]
    assert [(one.cause, one.cut) for one in breaks if one] == [("ttl", True), ("ttl", False)]


def test_a_break_before_the_first_of_several_requests_is_found() -> None:
    """The later ones read what the first wrote; each has its own model's price."""
    first, advice = Usage(2, 0, 52_000, 0, 100), Usage(30_000, 0, 0, 0, 900)
    last = Usage(2, 52_002, 1_000, 0, 200)
    every = (Iteration(first), Iteration(advice, "other"), Iteration(last))
    calls = [
        call(1, 0, Usage(10, 20_000, 30_000, 0, 500)),
        call(2, 1, of_iterations(every)),
        call(3, 2, Usage(2, 53_000, 500, 0, 100)),
    ]
    one, two, three = measured(plain(calls), priced)
    assert one.broken and two.broken and three.broken is None
    assert (two.broken.cause, two.broken.rewritten) == ("unexplained", 50_000)
    assert (two.prompt, two.opening, two.output) == (53_004, 52_002, 300)
    assert two.billed == Usage(30_004, 52_002, 53_000, 0, 1_200)
    assert two.cost == micros(sum(nanos(usage, SONNET) for usage in (first, advice, last)))
    assert three.expected == 53_002


def test_without_a_price_of_one_request_there_is_no_cost() -> None:
    every = (Iteration(Usage(1_000)), Iteration(Usage(5), "unknown"))
    calls = [call(1, 0, of_iterations(every))]
    (use,) = measured(plain(calls), lambda model, _: SONNET if model == "m" else None)
    assert use.cost is None
