"""Models that bind thinking to what was before it: every context is one that they accept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import render
from compaction.context.blocks import Block
from compaction.context.session import Session
from compaction.context.wire import WireBlock, block_of
from compaction.fold.fold import Arrival, State, advance, marks_of, resume, start
from compaction.fold.on_request import compact_now, undo
from compaction.policies.policy import Policy, Step
from compaction.policies.presets import PRESETS
from compaction.prices.binding import binds_thinking
from compaction.proposals.plan import Means
from compaction.recitation.recite import Recite
from compaction.simulation.simulate import simulate
from compaction.strategies.payback_settings import Payback
from compaction.summaries.extract import extractive
from tests.build import Talk, rough
from tests.compaction.talks import policies, talks
from tests.provider_binding import Bindings

MODEL = "claude-fable-5-2"
OFTEN = Policy(
    "p", steps=(Step("payback", Payback(results=1, readings=4, done=1, inputs=50, patience=6.0)),)
)


def signed(block: Block) -> WireBlock:
    if block.type == "thinking":
        return {"type": "thinking", "thinking": block.text, "signature": block.id}
    return block_of(block)


def asked(state: State) -> dict[str, Any]:
    body = render.anthropic(state.standing.values(), signed, state.ending)
    return {**body, "model": MODEL}


def walked(session: Session, policy: Policy, *, binds: bool = True) -> tuple[State, list[str]]:
    """The last state, and what the provider refused on the way: the thinking of each answer was
    made after the context before it."""
    state = start(policy, session.window, Means(rough, extractive, binds=binds))
    provider, refused = Bindings(), []
    for call in session.calls:
        came = tuple(block for block in session.blocks if block.born == call.step)
        advance(state, Arrival(call.step, came, call.at))
        body = asked(state)
        refused += provider.invalid(body)
        answer = [b for b in session.blocks if b.born == call.step + 1 and b.role == "assistant"]
        if came[-1:] and came[-1].role == "user":  # no model goes on by itself
            # Text without a letter cannot be sent back, so it is no part of what is compared.
            spoken = [one for one in answer if one.type != "text" or one.text.strip()]
            provider.note(body, [signed(block) for block in spoken])
    return state, refused


def thinking(state: State) -> list[str]:
    return [block.id for block in state.standing.values() if block.type == "thinking"]


@given(talks(), st.one_of(st.sampled_from(list(PRESETS.values())), policies()))
def test_no_context_is_refused(session: Session, policy: Policy) -> None:
    assert walked(session, policy)[1] == []


def long_talk() -> Talk:
    talk = Talk()
    talk.user("go")
    for number in range(30):
        talk.respond()
        talk.think(f"so {number}")
        talk.result(talk.call("Bash", {"command": f"make {number}"}), "some line\n" * 400)
    return talk


def test_thinking_after_an_edit_leaves_and_what_comes_later_stays() -> None:
    state, refused = walked(long_talk().session(), OFTEN)
    free, harmed = walked(long_talk().session(), OFTEN, binds=False)
    assert (refused, bool(harmed)) == ([], True)
    edits = [edit for made in state.made for edit in made.edits if edit.strategy == "thinking"]
    assert edits and all(edit.replacement is None for edit in edits)
    last = state.made[-1]
    first = min(state.known[one] for made in state.made for e in made.edits for one in e.targets)
    every = [block for block in state.originals.values() if block.type == "thinking"]
    stays = [b.id for b in every if b.position < first or b.born > last.step]
    assert len(stays) > 1 and thinking(state) == stays


@pytest.mark.parametrize(("turn", "edited"), [(True, False), (False, True)])
def test_thinking_of_this_turn_is_part_of_the_price(*, turn: bool, edited: bool) -> None:
    talk = Talk()
    talk.user("go")
    for number in range(20):
        talk.respond()
        talk.result(talk.call("Bash", {"command": f"make {number}"}), "some line\n" * 400)
        if number == 12:
            talk.respond()
            talk.think("so " * 8_000)
            talk.say("done")
            if not turn:
                talk.user("and now the rest")
    state, _ = walked(talk.session(), OFTEN)
    thought = next(b for b in state.originals.values() if b.type == "thinking")
    assert (thought.id not in {b.id for b in state.standing.values()}) is edited


def test_thinking_made_after_a_recitation_does_not_stay() -> None:
    policy = Policy("p", recite=Recite())
    talk = Talk()
    talk.user("- [ ] first thing\n- [ ] second thing")
    for number in range(3):
        talk.respond()
        talk.think(f"so {number}")
        todos = [{"content": f"part {number}", "status": "pending"}]
        talk.result(talk.call("TodoWrite", {"todos": todos}), "ok")
    state, refused = walked(talk.session(), policy)
    assert refused == []
    assert thinking(state) == ["b1"], "only the first was made before anything was recited"
    assert all("the recited text before it changed" in made.reason for made in state.made)


def test_a_system_prompt_that_grows_takes_all_thinking_along() -> None:
    talk = long_talk()
    talk.system("another rule")
    talk.respond()
    talk.think("so it is")
    talk.result(talk.call("Bash", {"command": "ls"}), "ok")
    state, refused = walked(talk.session(), PRESETS["passthrough"])
    assert refused == []
    assert [state.originals[state.known[one]].text for one in thinking(state)] == ["so it is"]


def test_an_undone_edit_returns_without_the_thinking_after_it() -> None:
    state, _ = walked(long_talk().session(), OFTEN)
    before = state.made[0]
    first = min(state.known[one] for edit in before.edits for one in edit.targets)
    for number in range(state.revisions, 0, -1):
        undo(state, number)
    assert all(state.known[one] <= first for one in thinking(state))
    assert state.standing[first].replaces is None


@pytest.mark.parametrize(
    ("model", "binds"),
    [
        ("claude-fable-5-1", True),
        ("claude-opus-5-5-20260901", True),
        ("anthropic/claude-sonnet-5.5", True),
        ("us.anthropic.claude-haiku-5-5-v1:0", True),
        ("claude-opus-5", False),
        ("claude-sonnet-4-5", False),
        ("claude-mythos-5-1", False),
        ("gpt-5.5", False),
        ("", False),
    ],
)
def test_which_models_bind(model: str, binds: bool) -> None:
    assert binds_thinking(model) is binds


def test_a_simulation_of_such_a_model_removes_it_too() -> None:
    session = long_talk().session()
    bound = simulate(replace(session, model=MODEL), OFTEN, rough)
    assert any(edit.strategy == "thinking" for made in bound.revisions for edit in made.edits)
    other = simulate(replace(session, model="claude-opus-5"), OFTEN, rough)
    assert not any(edit.strategy == "thinking" for made in other.revisions for edit in made.edits)


def test_thinking_that_answered_before_a_request_leaves_when_it_arrives() -> None:
    """A person compacts while the model answers; the answer comes later, its thinking is not valid
    after the compaction; that of the next answer is."""
    session = long_talk().session()
    state = start(PRESETS["passthrough"], session.window, Means(rough, extractive, binds=True))
    provider, refused = Bindings(), []
    for call in session.calls[:14]:
        came = tuple(block for block in session.blocks if block.born == call.step)
        advance(state, Arrival(call.step, came, call.at))
        state = resumed(state)
        body = asked(state)
        refused += provider.invalid(body)
        answer = [b for b in session.blocks if b.born == call.step + 1 and b.role == "assistant"]
        provider.note(body, [signed(block) for block in answer])
        if call.step == 10:
            assert compact_now(state) is not None
            state = resumed(state)
    assert refused == []
    assert [block.born for block in state.standing.values() if block.type == "thinking"] == [
        12,
        13,
        14,
    ]


def resumed(state: State) -> State:
    """The state as another process has it."""
    other = start(state.policy, state.window, state.means)
    arrived = [(e.from_step, e.block) for e in state.entries if e.opened_by is None]
    return resume(other, arrived, state.made, marks_of(state))


@pytest.mark.parametrize("policy", [OFTEN, Policy("p", recite=Recite()), Policy("p")])
def test_a_switch_to_a_model_that_binds_takes_invalid_thinking_along(policy: Policy) -> None:
    session = long_talk().session()
    state = start(policy, session.window, Means(rough, extractive))
    provider, refused = Bindings(), []
    for call in session.calls:
        binds = call.step > 14
        state.means = Means(rough, extractive, binds=binds)
        came = tuple(block for block in session.blocks if block.born == call.step)
        advance(state, Arrival(call.step, came, call.at))
        edited = any(edit.strategy != "thinking" for made in state.made for edit in made.edits)
        body = asked(state)
        refused += provider.invalid(body) if binds else []
        answer = [b for b in session.blocks if b.born == call.step + 1 and b.role == "assistant"]
        provider.note(body, [signed(block) for block in answer])
        state = resumed(state)
    assert (refused, edited) == ([], policy is OFTEN)
    assert (thinking(state)[0] == "b1") is (policy.recite is None)
