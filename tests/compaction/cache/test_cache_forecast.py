"""Forecasts for recorded calls: each rule alone, and never with the call's own usage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.cache.calibrate import compare
from compaction.cache.forecast import (
    Forecast,
    ForecastState,
    Moment,
    PromptChange,
    forecast,
    is_break,
    observe,
    whole_change,
)
from compaction.cache.rules import kept_by, strips_thinking
from compaction.context.session import Call, Usage

MINUTE = 60_000
OPUS = "claude-opus-4-6"


def seen(*calls: tuple[Moment, Usage]) -> ForecastState:
    known = ForecastState()
    for moment, usage in calls:
        observe(known, moment, usage)
    return known


def moment(step: int, minutes: float = 0, blocks: int = 0, **more: object) -> Moment:
    given = {"model": OPUS, **more}
    return Moment(step, at=int(minutes * MINUTE), blocks=blocks or step * 2, **given)  # type: ignore[arg-type]


def called(answer: tuple[Moment, Usage | None]) -> tuple[Call, Moment]:
    """A call at a moment."""
    return Call(answer[0].step, answer[0].model, answer[0].at, answer[1]), answer[0]


FIRST = moment(1), Usage(3, 20_000, 30_000)
SECOND = moment(2, 1), Usage(3, 50_000, 1_000)


@pytest.mark.parametrize(
    ("now", "read", "cause"),
    [
        (moment(3, 2), 51_000, None),
        (moment(3, 6.1), 51_000, None),
        (moment(3, 6.2), 20_000, "ttl"),
        (moment(3, 2, model="claude-opus-4-5"), 20_000, "model"),
        (moment(3, 2, changes=(PromptChange("edit", 1),)), 20_000, "edit"),
        (moment(3, 2, changes=(PromptChange("rewind", 2),)), 50_000, None),
        (moment(3, 2, changes=(whole_change("tools"),)), 0, "tools"),
        (moment(3, 2, blocks=40, changes=(PromptChange("edit", 3),)), 20_000, "edit"),
        (
            moment(3, 2, changes=(PromptChange("edit", 3), PromptChange("thinking", 1))),
            20_000,
            "thinking",
        ),
    ],
)
def test_what_is_left_of_a_prompt(now: Moment, read: int, cause: str | None) -> None:
    answer = forecast(seen(FIRST, SECOND), now)
    assert (answer.read, answer.cause, answer.left) == (read, cause, 51_000)
    assert answer.broken == (cause is not None)


def test_a_first_call_has_no_forecast() -> None:
    assert forecast(ForecastState(), moment(1)) == Forecast(0, None, "cold_start")
    assert not forecast(ForecastState(), moment(1)).broken


def test_the_ttl_is_that_of_the_last_write() -> None:
    hour = seen((moment(1), Usage(3, 0, 0, 40_000)))
    assert forecast(hour, moment(2, 30)).read == 40_000
    assert forecast(hour, moment(2, 61)).cause == "ttl"


def test_what_others_keep_warm_is_learned_from_breaks() -> None:
    known = seen(FIRST, (moment(2, 10), Usage(3, 9_000, 42_000)))
    assert forecast(known, moment(3, 20)).read == 9_000


def test_a_client_that_was_restarted_before_is_expected_to_be_so_again() -> None:
    known = seen(
        (moment(1, wrote=True), Usage(3, 0, 40_000)),
        (moment(2, 1, human=True, wrote=True), Usage(3, 0, 41_000)),
        (moment(3, 1.1, wrote=True), Usage(3, 41_000, 500)),
    )
    assert known.restarts == 1
    # One lost prefix may have other reasons.
    assert forecast(known, moment(4, 2, human=True)).cause is None
    observe(known, moment(4, 1.2, human=True), Usage(3, 0, 42_000))
    observe(known, moment(5, 1.3, wrote=True), Usage(3, 42_000, 500))
    assert known.restarts == 2
    answer = forecast(known, moment(6, 2, human=True))
    assert (answer.cause, answer.guess) == ("restart", True)
    # Logged causes come before guessed ones.
    level = moment(6, 2, human=True, changes=(PromptChange("settings", 0),))
    assert (forecast(known, level).cause, forecast(known, level).guess) == ("settings", False)
    assert forecast(known, moment(6, 1.4, human=True)).cause is None
    assert forecast(known, moment(6, 2)).cause is None


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (moment(3, 2), "unexplained"),
        (moment(3, 6.1), "ttl"),
        (moment(3, 2, blocks=24), "unexplained"),
        (moment(3, 2, blocks=25), "look_back"),
    ],
)
def test_what_usually_loses_nothing_is_named_when_it_does(now: Moment, named: str) -> None:
    answer = forecast(seen(FIRST, SECOND), now)
    assert (answer.named, answer.broken) == (named, False)
    # An automatic cache has no breakpoints.
    automatic = seen((moment(2, 1, model="gpt-5.5"), Usage(20_000)))
    assert forecast(automatic, moment(3, 2, blocks=60, model="gpt-5.5")).named == "unexplained"


@pytest.mark.parametrize(
    ("model", "left", "read"),
    [
        ("gpt-5.1", 20_000, 19_968),
        ("gpt-5.5", 20_000, 19_840),
        ("gpt-5.6-sol", 20_000, 19_200),
        ("google/gemini-3.1-flash", 20_000, 16_384),
        ("gemini-2.5-pro", 20_000, 18_432),
        ("deepseek-v4", 20_000, 20_032),
        ("gpt-5.1", 1_000, 0),
    ],
)
def test_automatic_caches_read_in_steps(model: str, left: int, read: int) -> None:
    known = seen((moment(1, model=model), Usage(left, output=64)))
    answer = forecast(known, moment(2, 1, model=model))
    assert (answer.read, answer.confidence) == (read, "best-effort")


def test_after_a_search_what_the_call_before_it_left_is_read() -> None:
    known = seen(
        (moment(1, model="gpt-5.5"), Usage(20_000)),
        (moment(2, 1, model="gpt-5.5"), Usage(11_000, 19_840)),
    )
    answer = forecast(known, moment(3, 2, model="gpt-5.5", changes=(PromptChange("search", 3),)))
    assert (answer.read, answer.cause, answer.broken) == (20_000, "search", True)


def test_ttls_of_automatic_caches() -> None:
    assert kept_by("gpt-5.5").ttl == 24 * kept_by("gemini-3").ttl
    known = seen((moment(1, model="gpt-5.2"), Usage(20_000)))
    assert forecast(known, moment(2, 11, model="gpt-5.2")).cause == "ttl"


@pytest.mark.parametrize(
    ("model", "strips"),
    [
        ("claude-opus-4-1-20250805", True),
        ("claude-opus-4-20250514", True),
        ("claude-opus-4-5", False),
        ("anthropic/claude-opus-4.6", False),
        ("claude-sonnet-4-5-20250929", True),
        ("claude-sonnet-4-6", False),
        ("claude-sonnet-5", False),
        ("claude-haiku-4-5", True),
        ("claude-3-5-sonnet-20241022", True),
        ("gpt-5.5", True),
        ("gpt-5.3-codex", True),
        ("gpt-5", True),
        ("gpt-5.6-sol", False),
        ("gemini-3-pro", False),
    ],
)
def test_who_takes_thinking_out_at_a_new_turn(model: str, strips: bool) -> None:
    assert strips_thinking(model) is strips


def test_calls_without_usage_pass_on_what_changed() -> None:
    silent = moment(2, 1, changes=(PromptChange("restart", 0),), human=True)
    answer = [FIRST, (silent, None), (moment(3, 2), Usage(3, 20_000, 31_000))]
    compared = compare(map(called, answer), {1: 1_000, 2: 1_500, 3: 2_000})
    assert [(one.cause, one.broke, one.foreseen) for one in compared] == [("restart", True, True)]
    assert compared[0].blind_prompt == 51_003


def test_a_log_that_began_in_the_middle_has_little_hidden_after_a_summary() -> None:
    answer = [
        (moment(1), Usage(0, 0, 150_000)),
        (moment(2, 1, changes=(PromptChange("edit", 0),)), Usage(0, 30_000, 15_000)),
    ]
    assert compare(map(called, answer), {1: 2_000, 2: 6_000})[0].blind_prompt == 45_000


USAGES = st.builds(Usage, *[st.integers(0, 200_000)] * 5)
CHANGES = st.lists(
    st.builds(PromptChange, st.sampled_from(["edit", "thinking"]), st.integers(-1, 40))
)
MOMENTS = st.lists(
    st.tuples(
        USAGES, CHANGES, st.booleans(), st.integers(0, 90), st.sampled_from([OPUS, "gpt-5.5"])
    ),
    max_size=12,
)


@given(MOMENTS)
def test_never_more_than_was_left_and_answered(
    given_calls: list[tuple[Usage, list[PromptChange], bool, int, str]],
) -> None:
    known = ForecastState()
    for step, (usage, changes, flag, minutes, model) in enumerate(given_calls, 1):
        now = moment(
            step, minutes, blocks=step * 3, changes=tuple(changes), human=flag, model=model
        )
        answer = forecast(known, now)
        assert answer == forecast(known, now)
        if answer.left is not None and known.usage is not None:
            assert 0 <= answer.read <= answer.left + known.usage.output
            assert answer.broken == is_break(answer.left, answer.read)
        observe(known, now, usage)
