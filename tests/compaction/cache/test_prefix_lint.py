"""What breaks a cached prefix: every kind of difference is named, and at its byte."""

from __future__ import annotations

import copy
import json
import random
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import render
from compaction.cache.prefix_lint import HOW, check
from compaction.cache.prefix_pieces import pieces_of
from compaction.cache.volatile import Kind
from compaction.context.blocks import Block
from tests.compaction.wires import Wires, odd_contexts

Json = Any


def tool(name: str, text: str = "Reads.") -> Json:
    return {"name": name, "description": text, "input_schema": {"type": "object", "properties": {}}}


REQUEST: Json = {
    "model": "claude-opus-4-6",
    "max_tokens": 100,
    "tools": [tool("read"), tool("write"), tool("grep")],
    "system": [{"type": "text", "text": "You help. Today is 2026-03-01 10:15. Run 7 of 9."}],
    "messages": [
        {"role": "user", "content": "Look at the tide tables."},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}]},
        {"role": "user", "content": [{"type": "text", "text": "And?"}]},
    ],
}


def canonical(request: Json) -> bytes:
    """The bytes that offsets count."""
    return "".join(item.text for item in pieces_of(request)).encode("utf-8", "replace")


def edited(*path: str | int, to: Json) -> Json:
    made = copy.deepcopy(REQUEST)
    place = made
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = to
    return made


SYSTEM = REQUEST["system"][0]["text"]
TEXT = ("system", 0, "text")
PICTURE = {"type": "image", "source": {"type": "base64", "data": "aGk="}}


@pytest.mark.parametrize(
    ("current", "kind", "path", "cause"),
    [
        (edited("model", to="claude-opus-4-5"), "model", "/model", "model"),
        (edited("tool_choice", to={"type": "none"}), "setting", "/tool_choice", "settings"),
        (edited("speed", to="fast"), "setting", "/speed", "settings"),
        (
            edited("messages", 2, "content", to=[*REQUEST["messages"][2]["content"], PICTURE]),
            "images",
            "/messages/2/content/1",
            "images",
        ),
        (edited("tools", to=[*REQUEST["tools"], tool("x")]), "tool_added", "/tools/3", "tools"),
        (edited("tools", to=REQUEST["tools"][:2]), "tool_removed", "/system/0", "tools"),
        (edited("tools", to=REQUEST["tools"][::-1]), "tool_order", "/tools/0", "tools"),
        (edited("tools", 1, to=tool("write", "New.")), "tool_changed", "/tools/1", "tools"),
        (
            edited("tools", 1, to=dict(reversed(tool("write").items()))),
            "key_order",
            "/tools/1",
            "tools",
        ),
        (edited(*TEXT, to=SYSTEM.replace("10:15", "10:16")), "clock", "/system/0", "system"),
        (edited(*TEXT, to=SYSTEM.replace("Run 7", "Run 8")), "counter", "/system/0", "system"),
        (edited(*TEXT, to=SYSTEM.replace(" Run", "\nRun")), "whitespace", "/system/0", "system"),
        (edited(*TEXT, to="You hinder."), "system_changed", "/system/0", "system"),
        (
            edited("messages", 0, "content", to="Look at the moon."),
            "message_edited",
            "/messages/0/content",
            "edit",
        ),
    ],
)
def test_each_kind_is_named_where_it_stands(
    current: Json, kind: str, path: str, cause: str
) -> None:
    found = check(REQUEST, current).findings
    assert [(one.kind, one.path, one.cause) for one in found] == [(kind, path, cause)]
    assert found[0].tokens > 0 and found[0].how == HOW[found[0].kind]


def test_the_offset_is_that_of_the_first_other_byte() -> None:
    current = edited(*TEXT, to=SYSTEM.replace("10:15", "10:16").replace("help", "hélp"))
    finding = check(REQUEST, current).findings[0]
    before, now = canonical(REQUEST), canonical(current)
    assert before[: finding.offset] == now[: finding.offset]
    assert before[finding.offset] != now[finding.offset]
    assert "help" in finding.before and "hélp" in finding.now


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("id 3f2b8c9e-0d11-4a6b-9c1d-0123456789ab.", "id 9f2b8c9e-0d11-4a6b-9c1d-0123456789ab."),
        ("trace_abc123def and on", "trace_xyz123def and on"),
    ],
)
def test_identifiers(was: str, now: str) -> None:
    found = check({"system": was}, {"system": now}).findings
    assert [(one.kind, one.layer) for one in found] == [("identifier", "system")]


def test_a_request_that_only_adds_breaks_nothing() -> None:
    longer = copy.deepcopy(REQUEST)
    longer["messages"].append({"role": "assistant", "content": "Ebb."})
    longer["messages"][0] = {
        "role": "user",
        "content": "Look at the tide tables.",
    }
    longer["system"][0]["cache_control"] = {"type": "ephemeral"}
    longer["max_tokens"] = 7
    assert check(REQUEST, longer).findings == []
    assert check(longer, REQUEST).findings == []  # a part of what was sent: nothing is paid again


def test_several_changes_come_in_the_order_of_the_prompt() -> None:
    current = edited("messages", 0, "content", to="Look up.")
    current["tool_choice"], current["tools"] = {"type": "any"}, REQUEST["tools"][::-1]
    found = check(REQUEST, current).findings
    assert [one.kind for one in found] == ["tool_order", "setting"]
    assert found[0].tokens > found[1].tokens


def test_requests_of_openai() -> None:
    function = {"type": "function", "function": {"name": "read", "parameters": {}}}
    was: Json = {
        "model": "gpt-5",
        "tools": [function],
        "messages": [
            {"role": "developer", "content": "It is 10:15:01."},
            {"role": "user", "content": "Go."},
        ],
    }
    now = copy.deepcopy(was)
    now["messages"][0]["content"] = "It is 10:15:09."
    assert [(one.kind, one.layer) for one in check(was, now).findings] == [("clock", "system")]
    now = copy.deepcopy(was)
    now["tools"].append({"type": "function", "function": {"name": "write"}})
    assert [one.kind for one in check(was, now).findings] == ["tool_added"]


def test_every_kind_says_how_to_mend_it() -> None:
    assert set(HOW) == set(get_args(Kind))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "name", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
REQUESTS = st.dictionaries(
    st.sampled_from(["model", "tools", "system", "messages", "thinking", "speed"]), VALUES
)


@given(REQUESTS, REQUESTS)
def test_any_two_requests_get_an_answer(previous: Json, current: Json) -> None:
    found = check(previous, current).findings
    assert check(previous, previous).findings == []
    assert [one.offset for one in found] == sorted(one.offset for one in found)
    assert all(0 <= one.offset < len(canonical(previous)) for one in found)
    sizes = check(previous, current).sizes
    assert sizes == (len(canonical(previous)), len(canonical(current)))


@given(odd_contexts(), st.randoms(use_true_random=False))
def test_a_rendering_has_the_same_bytes_whatever_order_its_blocks_came_in(
    odd: Wires, dice: random.Random
) -> None:
    def shuffled(block: Block) -> Json:
        wire = odd.wire_of(block)
        keys = list(wire)
        dice.shuffle(keys)
        return {key: wire[key] for key in keys}

    for form in (render.anthropic, render.openai):
        plain, other = form(odd.blocks, odd.wire_of), form(odd.blocks, shuffled)
        assert json.dumps(plain) == json.dumps(other)
        assert check(plain, other).findings == []
