"""Which policies the auto-tuner tries next."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.advice.tuner import (
    Outcome,
    Tried,
    frontier,
    identity,
    ladders,
    neighbours,
    next_policies,
)
from compaction.cache.economy import Objective
from compaction.policies.policy import Policy, Step, from_dict, to_dict
from compaction.policies.presets import PRESETS
from compaction.strategies import STRATEGIES
from compaction.strategies.compact_settings import Compact
from compaction.strategies.offload import Offload

OFFLOAD = Policy("mine", steps=(Step("offload", Offload(age=5, batch=5)),))

shares = st.floats(0, 1, allow_nan=False)
outcomes = st.builds(Outcome, st.none() | shares, shares, shares, st.sampled_from([0.0, 0.1]))


def tried(*outcomes: tuple[float, float, float]) -> list[Tried]:
    return [
        Tried(
            Policy("mine", steps=(Step("offload", Offload(age=number + 1)),)),
            Outcome(cost, cost, in_context, lost),
        )
        for number, (cost, in_context, lost) in enumerate(outcomes)
    ]


def ages(found: list[Tried]) -> list[int]:
    return [one.policy.steps[0].parameters.age for one in found]


def test_every_ladder_is_of_a_parameter_within_its_range() -> None:
    for strategy in STRATEGIES.values():
        known = {one.name: one for one in fields(strategy.parameters)}
        tries = ladders(strategy.name, "cheap") | ladders(strategy.name, "lean")
        for name, ladder in tries.items():
            assert list(ladder) == sorted(set(ladder))
            for rung in ladder:
                given = {name: type(known[name].default)(rung)}
                step = {"strategy": strategy.name, "parameters": given}
                from_dict({"name": "tried", "steps": [step]})


def test_the_frontier_is_what_nothing_beats_the_cheapest_first() -> None:
    found = tried((0.7, 0.9, 0.0), (0.5, 0.8, 0.0), (0.8, 0.85, 0.0), (0.9, 0.99, 0.0))
    assert ages(frontier(found, "cheap")) == [2, 1, 4]


def test_what_loses_needs_is_not_on_the_frontier_unless_all_do() -> None:
    found = tried((0.2, 1.0, 0.01), (0.9, 0.9, 0.0))
    assert ages(frontier(found, "cheap")) == [2]
    assert ages(frontier(found[:1], "cheap")) == [1]


def test_an_objective_says_what_to_minimize() -> None:
    cheap = Tried(OFFLOAD, Outcome(0.5, 0.9, 0.9, 0.0))
    lean = Tried(Policy("none"), Outcome(0.9, 0.5, 0.8, 0.0))
    assert frontier([cheap, lean], "cheap") == [cheap]
    assert frontier([cheap, lean], "lean") == [lean, cheap]


def test_without_prices_tokens_are_what_is_spent() -> None:
    assert Outcome(None, 0.4, 1.0, 0.0).spent("cheap") == 0.4


def test_neighbours_differ_by_one_move() -> None:
    found = list(neighbours(OFFLOAD))
    parameters = [one.steps[0].parameters for one in found if len(one.steps) == 1]
    assert [(one.age, one.batch, one.minimum) for one in parameters] == [
        (8, 5, 50), (3, 5, 50), (5, 10, 50), (5, 2, 50), (5, 5, 150),
    ]  # fmt: skip
    assert [[step.strategy for step in one.steps] for one in found if len(one.steps) == 2] == [
        ["dedupe", "offload"], ["externalise", "offload"], ["replace", "offload"],
        ["offload", "compact"],
    ]  # fmt: skip


@pytest.mark.parametrize(("objective", "acts", "idle"), [
    ("cheap", "patience", "haste"), ("lean", "haste", "patience"),
])  # fmt: skip
def test_only_what_the_objective_asks_for_is_tried(
    objective: Objective, acts: str, idle: str
) -> None:
    begun = replace(PRESETS["balanced"], objective=objective)
    same = [one for one in neighbours(begun) if one.objective == objective]

    def tries(name: str) -> bool:
        values = [
            getattr(step.parameters, name)
            for one in same
            for step in one.steps
            if step.strategy == "payback"
        ]
        return len(set(values)) > 1

    assert tries(acts)
    assert not tries(idle)


def test_the_other_objective_is_a_move_where_a_step_asks_for_it() -> None:
    assert [one.objective for one in neighbours(PRESETS["balanced"])].count("lean") == 1
    assert {one.objective for one in neighbours(OFFLOAD)} == {"cheap"}


def test_one_of_payback_and_offload_is_enough() -> None:
    for preset in PRESETS.values():
        for one in neighbours(preset):
            assert not {"payback", "offload"} <= {step.strategy for step in one.steps}


def test_a_step_may_go_but_not_the_last_one() -> None:
    both = Policy("mine", steps=(*OFFLOAD.steps, Step("compact", Compact())))
    names = [tuple(step.strategy for step in one.steps) for one in neighbours(both)]
    assert ("compact",) in names
    assert ("offload",) in names
    assert () not in [tuple(one.steps) for one in neighbours(OFFLOAD)]


def test_a_generation_takes_a_neighbour_of_each_point_in_turn() -> None:
    found = tried((0.5, 0.8, 0.0), (0.7, 0.9, 0.0))
    first, second = next_policies(found, "cheap", 2)
    assert first in list(neighbours(found[0].policy))
    assert second in list(neighbours(found[1].policy))


def test_a_search_of_nothing_finds_nothing() -> None:
    assert next_policies([], "cheap", 5) == []


def test_names_and_versions_make_no_other_policy() -> None:
    assert identity(Policy("a", 1)) == identity(Policy("b", 2))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_neighbours_of_every_preset_can_be_stored(name: str) -> None:
    for one in neighbours(PRESETS[name]):
        assert from_dict(to_dict(one)) == one


@given(st.lists(outcomes, min_size=1, max_size=12), st.integers(1, 9))
def test_a_search_tries_nothing_twice_and_the_same_again(found: list[Outcome], most: int) -> None:
    queue, done = [OFFLOAD], []
    for outcome in found:
        if not queue:
            queue = next_policies(done, "cheap", most)
            assert queue == next_policies(done, "cheap", most)
            if not queue:
                break
        done.append(Tried(queue.pop(0), outcome))
    names = [identity(one.policy) for one in done]
    assert len(names) == len(set(names))


@given(st.lists(outcomes, min_size=1, max_size=12))
def test_nothing_that_was_tried_beats_the_frontier(found: list[Outcome]) -> None:
    done = [Tried(OFFLOAD, one) for one in found]
    sound = [one for one in done if one.outcome.lost == 0] or done
    best = frontier(done, "cheap")
    for one in sound:
        assert any(
            other.outcome.spent("cheap") <= one.outcome.spent("cheap")
            and other.outcome.in_context >= one.outcome.in_context
            for other in best
        )
