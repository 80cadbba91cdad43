"""The cost of an entry is its share of each prompt that it was in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions.api.replay.entry_costs import StepCosts
from sessions.models import Run, Session

Prompts = list[tuple[int, float] | None]

PRICED = st.tuples(st.integers(1, 400), st.floats(0, 1e6))
PROMPTS = st.lists(PRICED, min_size=1, max_size=12)


def costs(prompts: Prompts, steps: int) -> StepCosts:
    made = StepCosts(Session(step_count=steps), Run())
    made.__dict__["_prompts"] = prompts
    return made


@given(PROMPTS, st.integers(0, 500), st.data())
def test_it_is_the_sum_over_its_steps(
    prompts: list[tuple[int, float]], tokens: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(1, len(prompts)))
    end = data.draw(st.integers(start, len(prompts)))
    found = costs([*prompts], len(prompts)).in_context(tokens, start, end + 1)
    expected = sum(spent * min(tokens / prompt, 1) for prompt, spent in prompts[start - 1 : end])
    assert found["steps"] == end - start + 1
    assert abs(found["cost_microusd"] - expected) <= 0.5 + 1e-6 * max(expected, 1)


def test_it_is_unknown_unless_all_its_steps_have_a_price() -> None:
    of = costs([(10, 4.0), None, (10, 6.0)], 3)
    assert of.in_context(5, 1, 2)["cost_microusd"] == 2
    assert of.in_context(5, 3, None)["cost_microusd"] == 3
    assert of.in_context(5, 1, None)["cost_microusd"] is None
    assert costs([(10, 4.0)], 2).in_context(5, 1, None)["cost_microusd"] is None, "not measured yet"
