"""Messages of live agents: three formats converted to blocks, and errors with their place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions.importers.decoded import Unreadable, exact
from sessions.importers.delivered.delivered import Batch, Unacceptable, call_report, delivery
from sessions.importers.records import Call, Message

TEXT = {"type": "text", "text": "hi"}
REMINDER = {"type": "text", "text": "<system-reminder>Todos are stale.</system-reminder>"}
SKILL = {"type": "text", "text": "Base directory for this skill: /skills/plan\n\n# Plan"}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def one(message: dict[str, Any]) -> Message:
    return delivery({"messages": [message]}).messages[0]


@pytest.mark.parametrize(
    ("message", "role", "blocks"),
    [
        ({"role": "user", "content": "hi"}, "user", [TEXT]),
        ({"role": "user", "content": ""}, "user", [{"type": "text", "text": ""}]),
        ({"role": "user", "content": [TEXT, "hi"]}, "user", [TEXT, TEXT]),
        ({"role": "user", "blocks": [TEXT]}, "user", [TEXT]),
        ({"role": "user", "content": [RESULT]}, "user", [RESULT]),
        ({"role": "user", "content": [{"type": "new", "x": 1}]}, "user", [{"type": "new", "x": 1}]),
        ({"role": "assistant", "content": [TEXT, USE]}, "assistant", [TEXT, USE]),
        ({"role": "assistant", "content": None}, "assistant", [{"type": "text", "text": ""}]),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, "assistant", [USE]),
        ({"role": "assistant", "content": "hi", "tool_calls": [CALL]}, "assistant", [TEXT, USE]),
        (
            {"role": "assistant", "function_call": {"name": "f", "arguments": "{"}},
            "assistant",
            [{"type": "tool_use", "id": "f", "name": "f", "input": {"arguments": "{"}}],
        ),
        (
            {"role": "assistant", "content": "hi", "reasoning_content": "hm"},
            "assistant",
            [{"type": "thinking", "thinking": "hm"}, TEXT],
        ),
        ({"role": "tool", "tool_call_id": "t1", "content": "ok"}, "tool", [RESULT]),
        ({"role": "tool", "content": [RESULT]}, "tool", [RESULT]),
        (
            {"role": "function", "name": "f", "content": "ok"},
            "tool",
            [{**RESULT, "tool_use_id": "f"}],
        ),
        ({"role": "developer", "content": "hi"}, "system", [TEXT]),
        ({"role": "system", "content": [TEXT]}, "system", [TEXT]),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
            "user",
            [{"type": "image", "source": {"type": "url", "url": "x"}}],
        ),
    ],
)
def test_each_shape_becomes_blocks(message: dict[str, Any], role: str, blocks: list[Any]):
    read = one(message)
    assert (read.role, read.blocks) == (role, blocks)


@pytest.mark.parametrize(
    ("message", "human"),
    [
        ({"role": "user", "content": "hi"}, True),
        ({"role": "user", "content": [RESULT]}, False),
        ({"role": "user", "content": [RESULT, TEXT]}, True),
        ({"role": "user", "content": [RESULT, REMINDER]}, False),
        ({"role": "user", "content": [RESULT, SKILL]}, False),
        ({"role": "user", "content": [REMINDER, TEXT]}, True),
        ({"role": "user", "content": f"{REMINDER['text']}\nhi"}, True),
        ({"role": "user", "content": "<task-notification>done</task-notification>"}, False),
        ({"role": "user", "content": ""}, True),
        ({"role": "user", "content": "hi", "kind": "memory"}, False),
        ({"role": "user", "content": "hi", "human": False}, False),
        ({"role": "tool", "content": "hi"}, False),
        ({"role": "assistant", "content": "hi"}, False),
        ({"role": "system", "content": "hi"}, False),
    ],
)
def test_a_turn_begins_with_what_a_person_wrote(message: dict[str, Any], human: bool):
    assert one(message).human is human


def test_what_a_message_says_beside_its_content():
    read = one(
        {
            "role": "assistant", "content": "hi", "id": "m1", "call": "c1", "at": "2026-01-01",
            "pinned": True, "kind": "summary", "name": "Ann", "refusal": None,
        }
    )  # fmt: skip
    assert (read.key, read.call, read.at, read.pinned, read.kind, read.extra) == (
        "m1", "c1", 1_767_225_600_000, True, "summary", {"name": "Ann"},
    )  # fmt: skip


def test_usage_is_of_the_last_answer_and_known_by_its_fields():
    batch = delivery(
        {
            "messages": [{"role": "assistant", "content": "a"}, {"role": "user", "content": "b"}],
            "usage": {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}},
            "model": "gpt-5", "call": "c1", "context_id": "ctx_1", "later": 1,
        }
    )  # fmt: skip
    first, second, call = batch.records
    assert isinstance(first, Message)
    assert isinstance(second, Message)
    assert isinstance(call, Call)
    assert (first.call, second.extra) == ("c1", {"delivery": {"later": 1}})
    assert (call.call, call.model, call.context) == ("c1", "gpt-5", "ctx_1")
    assert call.usage is not None
    assert (call.usage.uncached, call.usage.cache_read) == (6, 4)
    excluding = call_report({"usage": {"input_tokens": 6, "cache_read_input_tokens": 4}})[0]
    assert excluding.usage == call.usage


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (None, ""),
        ([], ""),
        ({}, "/messages"),
        ({"messages": []}, "/messages"),
        ({"messages": {}}, "/messages"),
        ({"messages": ["hi"]}, "/messages/0"),
        ({"messages": [{}]}, "/messages/0/role"),
        ({"messages": [{"role": "User", "content": ""}]}, "/messages/0/role"),
        ({"messages": [{"role": ["user"], "content": ""}]}, "/messages/0/role"),
        ({"messages": [{"role": "user"}]}, "/messages/0/content"),
        ({"messages": [{"role": "user", "content": 3}]}, "/messages/0/content"),
        ({"messages": [{"role": "user", "content": {}}]}, "/messages/0/content"),
        ({"messages": [{"role": "user", "content": [3]}]}, "/messages/0/content/0"),
        ({"messages": [{"role": "user", "content": [{}]}]}, "/messages/0/content/0/type"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]},
            "/messages/0/content/0/text",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{**USE, "id": None}]}]},
            "/messages/0/content/0/id",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{**USE, "id": "x" * 201}]}]},
            "/messages/0/content/0/id",
        ),
        (
            {"messages": [{"role": "assistant", "content": [{**USE, "input": "x"}]}]},
            "/messages/0/content/0/input",
        ),
        (
            {"messages": [{"role": "user", "content": [{**RESULT, "content": [{"type": 1}]}]}]},
            "/messages/0/content/0/content/0/type",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": {}}]},
            "/messages/0/tool_calls",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "t"}]}]},
            "/messages/0/tool_calls/0/function",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": 3, "function": {}}]}]},
            "/messages/0/tool_calls/0/id",
        ),
        ({"messages": [{"role": "user", "content": "", "id": 3}]}, "/messages/0/id"),
        ({"messages": [{"role": "user", "content": "", "id": "\x00"}]}, "/messages/0/id"),
        ({"messages": [{"role": "user", "content": "", "id": "\ud800"}]}, "/messages/0/id"),
        ({"messages": [{"role": "user", "content": "", "at": "soon"}]}, "/messages/0/at"),
        ({"messages": [{"role": "user", "content": "", "kind": "x"}]}, "/messages/0/kind"),
        ({"messages": [{"role": "user", "content": "", "kind": []}]}, "/messages/0/kind"),
        ({"messages": [{"role": "user", "content": "", "pinned": 1}]}, "/messages/0/pinned"),
        ({"messages": [{"role": "user", "content": "", "human": ""}]}, "/messages/0/human"),
        (
            {"messages": [{"role": "user", "content": "", "id": "a"}] * 2},
            "/messages/1/id",
        ),
        ({"messages": [{"role": "assistant", "content": "", "usage": 3}]}, "/messages/0/usage"),
        ({"messages": [{"role": "user", "content": ""}], "usage": {"input_tokens": 1}}, "/usage"),
        (
            {"messages": [{"role": "assistant", "content": "", "usage": {"input_tokens": -5}}]},
            "/messages/0/usage/input_tokens",
        ),
        ({"messages": [{"role": "user", "content": ""}], "context_id": "ctx"}, "/context_id"),
        ({"tools": {}}, "/tools"),
        ({"tools": ["f"]}, "/tools/0"),
        ({"system": 3}, "/system"),
        ({"system": [{"type": "text"}]}, "/system/0"),
        ({"tools": [], "model": 3}, "/model"),
        ({"tools": [], "history": "yes"}, "/history"),
        ({"tools": [], "call": 3}, "/call"),
    ],
)
def test_what_is_wrong_is_named(body: Any, pointer: str):
    with pytest.raises(Unacceptable) as refused:
        delivery(body)
    assert refused.value.pointer == pointer
    assert refused.value.problem


def test_nesting_has_a_limit_and_hostile_content_has_none():
    deep: Any = "x"
    for _ in range(200):
        deep = [deep]
    for body in (
        {"messages": [{"role": "user", "content": "", "x": deep}]},
        {"tools": [{"x": deep}]},
    ):
        with pytest.raises(Unacceptable, match="deep"):
            delivery(body)
    odd = {"type": "odd", "n": 10**400, "text": "\x00\ud800<|endoftext|>" + "a" * 1_000_000}
    assert one({"role": "user", "content": [odd]}).blocks == [odd]


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"NaN", b'{"a": Infinity}', b"1e400", b"\xff", b"1" * 5_000, b"[" * 100_000],
)
def test_bodies_that_are_no_json_are_unreadable(raw: bytes):
    with pytest.raises(Unreadable):
        exact(raw)


def test_bodies_are_read_as_they_stand():
    assert exact(b'["\\u0000", "\\ud800", 123456789012345678901234567890]') == [
        "\x00", "\ud800", 123456789012345678901234567890,
    ]  # fmt: skip


words = st.sampled_from(
    ["role", "content", "type", "text", "user", "assistant", "tool", "tool_use", "tool_result",
     "id", "name", "input", "messages", "tools", "system", "usage", "call", "tool_calls",
     "function", "input_tokens", "at", "kind", "pinned", "human", "history"]
)  # fmt: skip
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=20,
)
messages = st.fixed_dictionaries(
    {"role": words, "content": values},
    optional={"tool_calls": values, "usage": values, "id": words},
)
bodies = values | st.fixed_dictionaries(
    {"messages": st.lists(messages | values, max_size=3)},
    optional={"tools": values, "system": values, "usage": values, "call": values},
)


@settings(max_examples=300)
@given(body=bodies)
def test_any_value_is_read_or_refused_at_a_place_of_its_own(body: Any):
    try:
        assert isinstance(delivery(body), Batch)
    except Unacceptable as refused:
        there: Any = body
        *path, last = refused.pointer.split("/")[1:] or [""]
        for part in path:
            there = there[int(part)] if isinstance(there, list) else there[part]
        assert last == "" or isinstance(there, dict | list)
