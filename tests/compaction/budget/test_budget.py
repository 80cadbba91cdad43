"""Budgets: where a context stands, and what its agent is advised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.budget.budget import LADDER, ContextLimits, budget_of, standing
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload
from compaction.strategies.window import Window


def test_trigger_and_target_come_from_the_steps_of_the_policy():
    room = 200_000 - 16_384
    first = budget_of(PRESETS["offload-first"], 200_000)
    assert (first.room, first.trigger, first.target) == (room, int(0.7 * room), None)
    sliding = budget_of(PRESETS["sliding-window"], 200_000)
    assert (sliding.trigger, sliding.target) == (24_000, 12_000)
    none = budget_of(PRESETS["passthrough"], 200_000)
    assert (none.trigger, none.target, none.room) == (None, None, 200_000)


def test_a_budget_of_the_conversation_alone_is_shown_for_whole_prompts():
    budget = budget_of(PRESETS["sliding-window"], 200_000, hidden=39_000)
    assert (budget.trigger, budget.target) == (63_000, 51_000)
    policy = Policy("w", steps=(Step("window", Window()),), reserve=10_000)
    assert budget_of(policy, 110_000, hidden=39_000).trigger == 75_000


def test_the_first_step_that_has_a_trigger_counts():
    steps = (
        Step("offload", Offload()),
        Step("compact", Compact(trigger=0.5)),
        Step("window", Window()),
    )
    assert budget_of(Policy("p", steps=steps), 1_000).trigger == 500


@pytest.mark.parametrize(
    ("used", "state", "delay"),
    [
        (0, "ok", 0),
        (699, "ok", 0),
        (700, "trigger", 0),
        (800, "trigger", 50),
        (850, "trigger", 300),
        (900, "trigger", 750),
        (950, "trigger", 1_500),
        (1_000, "trigger", 1_500),
        (1_001, "over", 1_500),
    ],
)
def test_the_ladder_with_a_trigger(used: int, state: str, delay: int):
    stands = standing(ContextLimits(1_200, 200, trigger=700), used)
    assert (stands.state, stands.delay_ms) == (state, delay)
    assert stands.share == used / 1_000


@pytest.mark.parametrize(("used", "state"), [(799, "ok"), (800, "warn"), (1_000, "warn")])
def test_without_a_trigger_four_fifths_warn(used: int, state: str):
    assert standing(ContextLimits(1_000), used).state == state


def test_a_reserve_larger_than_the_window_leaves_no_room_and_no_error():
    assert standing(ContextLimits(1_000, 2_000), 0).room == 1
    assert standing(ContextLimits(1_000, 2_000), 2).state == "over"


@given(st.integers(1, 10**7), st.integers(0, 10**7), st.integers(0, 2 * 10**7))
def test_more_use_never_advises_less_waiting(window: int, reserve: int, used: int):
    budget = ContextLimits(window, reserve)
    stands, more = standing(budget, used), standing(budget, used + 1)
    assert stands.delay_ms <= more.delay_ms
    assert stands.delay_ms in {0, *(delay for _, delay in LADDER)}
