"""Whatever stands in a context: what is made of it is taken, and nothing of it is lost."""

import json
from typing import Any

from anthropic import Anthropic
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction import render
from compaction.context.blocks import Block, Ending
from compaction.context.edits import context_at
from compaction.context.session import Session
from compaction.context.wire import WireBlock, block_of
from compaction.fold.layers import ending_at
from compaction.policies.policy import Policy
from compaction.policies.presets import PRESETS
from compaction.render import Prefix
from compaction.render.content import text_part
from compaction.simulation.simulate import simulate
from tests.build import Talk, coding, rough
from tests.compaction.talks import policies, talks
from tests.compaction.wires import Wires, gives, odd_contexts, text, uses
from tests.openai_rules import openai as openai_problems
from tests.provider import provider
from tests.provider_rules import anthropic as anthropic_problems

FILLER = [{"role": "user", "content": "hello"}]


def sent(made: dict[str, Any]) -> dict[str, Any]:
    """A request with this context; one without any message gets the first."""
    part = {name: value for name, value in made.items() if name != "notes"}
    return {"model": "claude-test", "max_tokens": 1, **part, "messages": made["messages"] or FILLER}


@settings(max_examples=400)
@given(odd_contexts())
def test_any_context_is_valid_for_both_providers(odd: Wires) -> None:
    before = odd.bytes
    for breakpoints in (True, False):
        made = render.anthropic(odd.blocks, odd.wire_of, breakpoints=breakpoints)
        assert anthropic_problems(sent(made)) == []
        assert breakpoints or "cache_control" not in json.dumps(sent(made))
    assert openai_problems(sent(render.openai(odd.blocks, odd.wire_of))) == []
    assert odd.bytes == before


@settings(max_examples=100)
@given(odd_contexts())
def test_same_blocks_same_bytes(odd: Wires) -> None:
    for form in (render.anthropic, render.openai):
        first, second = (json.dumps(form(odd.blocks, odd.wire_of)) for _ in range(2))
        assert first == second


@settings(max_examples=400)
@given(odd_contexts(), st.data())
def test_a_prefix_saves_work_and_changes_nothing(odd: Wires, data: st.DataObject) -> None:
    """Contexts that grow, shrink and lose blocks, as those of one session do."""
    prefix: Prefix | None = None
    for _ in range(4):
        end = data.draw(st.integers(0, len(odd.blocks)), label="end")
        gone = data.draw(st.sets(st.integers(0, len(odd.blocks)), max_size=2), label="gone")
        blocks = [block for at, block in enumerate(odd.blocks[:end]) if at not in gone]
        made, prefix = render.anthropic_from(
            prefix, blocks, odd.wire_of, Ending(), breakpoints=True, ttl="5m"
        )
        assert made == render.anthropic(blocks, odd.wire_of)


def test_only_what_follows_a_prefix_is_read() -> None:
    """A prefix that is never kept would change nothing either."""
    session = coding(30)
    read: list[str] = []

    def wire_of(block: Block) -> WireBlock:
        read.append(block.id)
        return block_of(block)

    prefix = None
    for end in range(2, len(session.blocks)):
        read.clear()
        _, prefix = render.anthropic_from(
            prefix, session.blocks[:end], wire_of, Ending(), breakpoints=True, ttl="5m"
        )
        spoken = [block.id for block in session.blocks[:end] if block.role != "system"]
        assert len({*read}.intersection(spoken)) <= 6


def test_a_late_result_is_moved_up_to_its_call_in_a_prefix() -> None:
    talk = Talk()
    talk.user("Find the port.")
    talk.respond()
    use = talk.call("Read", {"file_path": "settings.py"})
    for number in range(3):
        talk.user(f"And {number}?")
        talk.respond()
        talk.say(f"That is {number}.")
    _, prefix = render.anthropic_from(
        None, talk.blocks, block_of, Ending(), breakpoints=True, ttl="5m"
    )
    assert use in prefix.blocks
    blocks = [*talk.blocks, talk.result(use, "PORT = 80")]
    made, _ = render.anthropic_from(prefix, blocks, block_of, Ending(), breakpoints=True, ttl="5m")
    assert made == render.anthropic(blocks, block_of)
    assert "PORT = 80" in json.dumps(made["messages"][2]), "right after its call"


def test_a_response_that_goes_on_after_a_prefix_is_one_turn() -> None:
    def context(call: str) -> Wires:
        it = Wires().say("user", text("Go.")).say("assistant", uses("t1"), call="1")
        return it.say("user", gives("t1")).say("assistant", text("Done."), call=call)

    other, same = context("2"), context("1")
    _, prefix = render.anthropic_from(
        None, other.blocks, other.wire_of, Ending(), breakpoints=True, ttl="5m"
    )
    assert prefix.begins(same.blocks)
    made, _ = render.anthropic_from(
        prefix, same.blocks, same.wire_of, Ending(), breakpoints=True, ttl="5m"
    )
    assert made == render.anthropic(same.blocks, same.wire_of)
    assert made["messages"] != render.anthropic(other.blocks, other.wire_of)["messages"]


@settings(max_examples=100)
@given(odd_contexts())
def test_every_call_is_answered_once_and_every_text_is_there(odd: Wires) -> None:
    made = render.anthropic(odd.blocks, odd.wire_of)
    parts = [part for message in made["messages"] for part in message["content"]]
    calls = sum(1 for b in odd.blocks if b.type == "tool_use" and b.role == "assistant")
    assert sum(1 for part in parts if part["type"] == "tool_use") == calls
    assert sum(1 for part in parts if part["type"] == "tool_result") == calls
    whole = json.dumps([made.get("system"), made["messages"]], ensure_ascii=False)
    for block in odd.blocks:
        if block.type == "text" and block.text.strip() and block.text.isalnum():
            assert block.text in whole


@settings(max_examples=60)
@given(talks(), policies(), st.data())
def test_contexts_that_policies_make_are_valid_at_every_step(
    session: Session, policy: Policy, data: st.DataObject
) -> None:
    run = simulate(session, policy, rough)
    step = data.draw(st.sampled_from([call.step for call in session.calls]))
    blocks = list(context_at(run.entries, step).values())
    originals = [block for block in session.blocks if block.born <= step]
    last = max((call.at for call in session.calls if call.step < step and call.at), default=None)
    end = ending_at(policy, originals, blocks, rough, last)
    made = render.anthropic(blocks, _wire, end)
    assert anthropic_problems(sent(made)) == []
    assert openai_problems(sent(render.openai(blocks, _wire, end))) == []
    parts = [part for message in made["messages"] for part in message["content"]]
    marked = [place for place, part in enumerate(parts) if "cache_control" in part]
    assert 1 <= len(marked) <= 2
    if policy.recite is None and not end.once:
        assert parts[marked[-1] + 1 :] == [p for p in parts[marked[-1] + 1 :] if "thinking" in p]
    figures = next(one for one in run.steps if one.step == step)
    assert (figures.recited, figures.once_from) == (end.tokens, end.once[0] if end.once else None)
    if end.text:
        newest = [message for message in made["messages"] if message["role"] == "user"][-1]
        assert newest["content"][-1]["text"] == text_part(end.text)["text"]
        assert "cache_control" not in newest["content"][-1]


def _wire(block: Block) -> WireBlock:
    if block.type == "thinking":
        return {"type": "thinking", "thinking": block.text, "signature": "sig"}
    return block_of(block)


def test_the_sdk_sends_what_is_rendered_and_the_provider_takes_it() -> None:
    session = coding(120)
    run = simulate(session, PRESETS["offload-first"], rough)
    with provider() as it, Anthropic(api_key="test", base_url=it.url, max_retries=0) as client:
        for call in session.calls[::5]:
            blocks = list(context_at(run.entries, call.step).values())
            made = render.anthropic(blocks, _wire)
            part: Any = {name: made[name] for name in made if name != "notes"}
            client.messages.create(model="claude-test", max_tokens=1, **part)
            assert it.bodies[-1]["messages"] == made["messages"]
    assert it.refused == []
