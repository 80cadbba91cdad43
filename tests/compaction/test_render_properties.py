"""Whatever stands in a context: what is made of it is taken, and nothing of it is lost."""

import json
from typing import Any

from hypothesis import given, settings

from compaction import render
from tests.compaction.wires import Wires, odd_contexts
from tests.openai_rules import openai as openai_problems
from tests.provider_rules import anthropic as anthropic_problems

FILLER = [{"role": "user", "content": "hello"}]


def sent(made: dict[str, Any]) -> dict[str, Any]:
    """A request with this context; one without any message gets the first."""
    part = {name: value for name, value in made.items() if name != "notes"}
    return {"model": "claude-test", "max_tokens": 1, **part, "messages": made["messages"] or FILLER}


@settings(max_examples=400, deadline=None)
@given(odd_contexts())
def test_any_context_is_valid_for_both_providers(odd: Wires) -> None:
    before = odd.bytes
    for breakpoints in (True, False):
        made = render.anthropic(odd.blocks, odd.wire_of, breakpoints=breakpoints)
        assert anthropic_problems(sent(made)) == []
        assert breakpoints or "cache_control" not in json.dumps(sent(made))
    assert openai_problems(sent(render.openai(odd.blocks, odd.wire_of))) == []
    assert odd.bytes == before


@settings(max_examples=100, deadline=None)
@given(odd_contexts())
def test_same_blocks_same_bytes(odd: Wires) -> None:
    for form in (render.anthropic, render.openai):
        first, second = (json.dumps(form(odd.blocks, odd.wire_of)) for _ in range(2))
        assert first == second


@settings(max_examples=100, deadline=None)
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
