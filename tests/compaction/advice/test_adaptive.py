"""What past compactions suggest: every rule, the steps it takes, and where it is unknown."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.advice.adaptive import LEAST, Model, Past, Task, suggestions, task_of
from compaction.losses.quality import Fit
from compaction.strategies.compact_settings import Compact

ANTHROPIC = Model(200_000, 0.1)
NOW = Compact(trigger=0.85)


def answer(
    fit: Fit, *missed: str, task: Task = "editing", now: Compact = NOW, model: Model = ANTHROPIC
) -> dict[str, Any]:
    """The suggestions where all compactions were alike."""
    past = [Past(task, fit, missed)] * LEAST
    found = suggestions(past, now, model)
    return {one.name: one.value for one in found if one.value is not None}


@pytest.mark.parametrize(
    ("calls", "changes", "said", "task"),
    [
        (0, 0, 0, "chat"),
        (0, 0, 9, "chat"),
        (4, 4, 5, "chat"),
        (100, 4, 5, "research"),
        (100, 5, 5, "editing"),
        (3, 1, 1, "editing"),
    ],
)
def test_a_task_is_judged_by_its_calls(calls: int, changes: int, said: int, task: str) -> None:
    assert task_of(calls, changes, said) == task


def test_what_fits_stays() -> None:
    assert answer("right") == {}
    reasons = {
        one.name: one.reason for one in suggestions([Past("chat", "right")] * 5, NOW, Model())
    }
    assert "price is unknown" in reasons["trigger"]
    assert all(reasons.values())


@pytest.mark.parametrize(
    ("missed", "task", "proposed"),
    [
        (("changed",), "editing", {"trigger": 0.9, "summary_tokens": 4_500, "form": "progress"}),
        (("changed",), "research", {"trigger": 0.9, "summary_tokens": 4_500}),
        (("messages",), "research", {"trigger": 0.9, "user_tokens": 20_000}),
        (("messages", "todos"), "chat", {"trigger": 0.9, "summary_tokens": 4_500}),
        ((), "research", {"trigger": 0.9, "summary_tokens": 4_500}),
    ],
)
def test_too_much_taken_out(missed: tuple[str, ...], task: Task, proposed: dict[str, Any]) -> None:
    now = replace(NOW, user_tokens=10_000 if missed == ("messages",) else 20_000)
    assert answer("over", *missed, task=task, now=now) == proposed


def test_later_by_more_where_files_are_edited() -> None:
    early = Compact(trigger=0.6)
    assert answer("over", task="editing", now=early)["trigger"] == 0.7
    assert answer("over", task="research", now=early)["trigger"] == 0.65


def test_too_little_taken_out() -> None:
    assert answer("under", "target") == {"user_tokens": 10_000}
    assert answer("under", "target", now=replace(NOW, user_tokens=2_000)) == {}
    assert answer("under", "target", task="chat") == {}
    assert answer("under", "gain", now=Compact(trigger=0.5)) == {"trigger": 0.6}


def test_the_form_goes_back_where_words_are_lost() -> None:
    now = replace(NOW, form="progress", user_tokens=0)
    assert answer("over", "todos", task="research", now=now)["form"] == "nine"
    assert "form" not in answer("over", "todos", task="editing", now=now)


@pytest.mark.parametrize(
    ("read", "trigger", "value"),
    [(1.0, 0.9, 0.8), (1.0, 0.7, None), (0.1, 0.7, 0.75), (0.1, 0.8, None), (0.3, 0.75, None)],
)
def test_what_fits_goes_by_the_price_of_the_cache(
    read: float, trigger: float, value: float | None
) -> None:
    found = answer("right", now=Compact(trigger=trigger), model=Model(200_000, read))
    assert found.get("trigger") == value


def test_a_small_window_keeps_room_for_the_summary() -> None:
    found = answer("over", now=Compact(trigger=0.8), model=Model(20_000))
    assert found == {}, "3,000 tokens twice do not fit beyond 70 %"


def test_one_in_three_is_often_and_half_is_no_task() -> None:
    rest = [Past("chat", "right")] * 4
    few = suggestions([Past("editing", "over", ("changed",)), *rest], NOW, ANTHROPIC)
    assert all(one.value is None for one in few)
    two = suggestions([Past("editing", "over", ("changed",))] * 2 + rest, NOW, ANTHROPIC)
    assert [one.value for one in two] == [0.9, 4_500, None, None]
    split = [Past("editing", "right"), Past("chat", "right")] * 3
    assert suggestions(split, NOW, ANTHROPIC)[3].reason == "sessions are mixed"


_PAST = st.builds(
    Past,
    st.sampled_from(["editing", "research", "chat"]),
    st.sampled_from(["over", "under", "right"]),
    st.lists(st.sampled_from(["changed", "open_errors", "todos", "messages", "gain", "target"])),
)


@given(
    st.lists(_PAST, max_size=9),
    st.builds(
        Compact,
        trigger=st.floats(0.05, 0.95),
        summary_tokens=st.integers(200, 50_000),
        user_tokens=st.integers(0, 1_000_000),
        form=st.sampled_from(["nine", "progress"]),
    ),
    st.builds(Model, st.none() | st.integers(1_000, 2_000_000), st.none() | st.floats(0, 1.25)),
)
def test_whatever_was_values_are_allowed_and_reasons_given(
    past: list[Past], now: Compact, model: Model
) -> None:
    found = suggestions(past, now, model)
    assert found == suggestions(past, now, model)
    limits = {one.name: one.metadata for one in fields(Compact)}
    for one in found:
        assert one.reason and one.now == getattr(now, one.name)
        if one.value is None:
            continue
        assert len(past) >= LEAST and one.value != one.now
        if not isinstance(one.value, str):
            assert limits[one.name]["min"] <= one.value <= limits[one.name]["max"]
