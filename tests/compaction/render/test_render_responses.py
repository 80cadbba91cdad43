"""Contexts for the Responses API: valid whatever stands in them, and unedited items unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from compaction import render
from tests.compaction.wires import Wires, gives, odd_contexts, text, uses
from tests.responses_rules import responses as problems

Json = dict[str, Any]
THOUGHT = {
    "type": "thinking",
    "thinking": "",
    "id": "rs_1",
    "encrypted_content": "E",
    "summary": [],
}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}


def made(wires: Wires) -> Json:
    body = render.responses(wires.blocks, wires.wire_of)
    return {"input": body["messages"], **body}


@settings(max_examples=300)
@given(odd_contexts())
def test_any_context_is_valid(odd: Wires) -> None:
    for id, wire in odd.wires.items():
        if wire.get("type") == "thinking":
            odd.wires[id] = THOUGHT if "signature" in wire else SEARCH
    body = made(odd)
    assert problems(body) == []
    assert json.dumps(made(odd)) == json.dumps(body), "equal blocks give equal bytes"


def reasoned(**item: Any) -> Wires:
    use = {**uses("c1"), **({"item": item} if item else {})}
    it = Wires().say("system", text("Be brief.")).say("user", text("Go."))
    return it.say("assistant", THOUGHT, SEARCH, use, call="1").say("user", gives("c1"))


def forms(body: Json) -> list[str]:
    return [item.get("type") or item["role"] for item in body["input"]]


def test_reasoning_stays_with_what_followed_it() -> None:
    it = reasoned(namespace="web")
    body = made(it)
    assert forms(body) == [
        *("developer", "user", "reasoning", "web_search_call"),
        *("function_call", "function_call_output"),
    ]
    assert body["input"][2] == {
        "type": "reasoning",
        "id": "rs_1",
        "encrypted_content": "E",
        "summary": [],
    }
    assert body["input"][4]["namespace"] == "web"
    assert problems(body) == []


def test_reasoning_leaves_with_what_followed_it() -> None:
    it = reasoned()
    places = [at for at, block in enumerate(it.blocks) if it.wire_of(block) == SEARCH]
    it.blocks[places[0] : places[0] + 1] = []
    assert forms(made(it))[2:] == ["function_call", "function_call_output"]


def test_a_call_of_the_provider_leaves_with_its_reasoning() -> None:
    it = reasoned()
    places = [at for at, block in enumerate(it.blocks) if block.type == "thinking"]
    it.blocks[places[0] : places[0] + 1] = []
    assert forms(made(it))[2:] == ["function_call", "function_call_output"]


def between_agents(*more: Json) -> Wires:
    item = {"type": "agent_message", "author": "/root", "recipient": "/root/count"}
    it = Wires().say("user", text("The folder is /a."))
    return it.say("user", text("Task:", item=item), *more).say("user", text("Be quick."))


def test_messages_between_agents_stay_items_of_their_own() -> None:
    secret = {"type": "encrypted_content", "encrypted_content": "E"}
    body = made(between_agents(secret))
    assert forms(body) == ["user", "agent_message", "user"]
    assert body["input"][1] == {
        "type": "agent_message",
        "author": "/root",
        "recipient": "/root/count",
        "content": [{"type": "input_text", "text": "Task:"}, secret],
    }
    assert (problems(body), body["notes"]) == ([], [])


def test_encrypted_content_leaves_where_its_message_is_edited() -> None:
    it = between_agents({"type": "encrypted_content", "encrypted_content": "E"})
    body = made(it.replaced(1, text("[a task]")))
    assert forms(body) == ["user"]
    assert [part["text"] for part in body["input"][0]["content"]] == [
        *("The folder is /a.", "[a task]", "Be quick."),
    ]
    assert problems(body) == []
    assert "Encrypted content was left out" in body["notes"][0]


def test_an_edited_call_keeps_its_pair() -> None:
    it = Wires()
    use = {"type": "tool_use", "id": "c1", "name": "patch", "input": {"input": "*** Begin"}}
    it.say("user", text("Go.")).say("assistant", {**use, "item": {"type": "custom_tool_call"}})
    it.say("user", gives("c1"))
    whole = made(it)
    assert forms(whole)[1:] == ["custom_tool_call", "custom_tool_call_output"]
    assert whole["input"][1]["input"] == "*** Begin"
    at = next(at for at, block in enumerate(it.blocks) if block.type == "tool_use")
    it.blocks[at] = replace(it.blocks[at], replaces=it.blocks[at].id)
    assert forms(made(it))[1:] == ["function_call", "function_call_output"]


@pytest.mark.parametrize(
    ("tool", "sent"),
    [
        ({"type": "web_search"}, {"type": "web_search"}),
        ({"type": "custom", "name": "patch", "format": {"type": "text"}}, None),
        (
            {"name": "Read", "input_schema": {"type": "object"}},
            {"strict": False, "name": "Read", "parameters": {"type": "object"}, "type": "function"},
        ),
    ],
)
def test_tools_stay_as_the_agent_sent_them(tool: Json, sent: Json | None) -> None:
    it = Wires().say("system", {"type": "tools", "tools": [tool]}).say("user", text("Go."))
    assert made(it)["tools"] == [sent or tool]
