"""Requests: tools, system text, cache breakpoints and stable bytes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compaction import render
from compaction.cache.economy import TTLSetting
from compaction.context.blocks import Block, Ending
from compaction.context.stubs import input_stub, stand_in
from compaction.context.wire import block_of
from tests.compaction.render.rendered import TOOL, Json, ask, chat, made, short
from tests.compaction.wires import PNG, Wires, gives, text, thinks, uses
from tests.provider_rules import anthropic as problems


@pytest.mark.parametrize(
    ("tool", "sent"),
    [
        (TOOL, TOOL),
        ({**TOOL, "cache_control": {"type": "ephemeral"}, "unknown": 1}, TOOL),
        ({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "b": 1,
                                                                       "a": 2}}},
         {"name": "f", "input_schema": {"type": "object", "b": 1, "a": 2}}),
        ({"type": "function", "name": "f", "parameters": {}, "strict": True},
         {"name": "f", "input_schema": {"type": "object"}, "strict": True}),
        ("Bash", {"name": "Bash", "input_schema": {"type": "object"}}),
        ({"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
         {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}),
        ({"description": "nameless"}, None),
        (3, None),
    ],
)  # fmt: skip
def test_tools_of_either_provider(tool: Any, sent: Json | None) -> None:
    it = Wires().say("system", {"type": "tools", "tools": [tool]}).say("user", text("go"))
    body = made(it)
    assert body.get("tools") == (None if sent is None else [sent])
    if sent is not None and "input_schema" in sent:
        assert list(body["tools"][0]["input_schema"]) == list(sent["input_schema"])
    assert ("tools" in chat(it)) == (sent is not None and "max_uses" not in sent)


def test_the_newest_tools_and_all_system_text_come_first() -> None:
    it = Wires().say("system", {"type": "tools", "tools": [TOOL]}, text("one"))
    it.say("user", text("go")).say("assistant", text("yes"), call="r1")
    it.say("system", text("two"), {"type": "tools", "tools": [{**TOOL, "name": "Write"}]})
    body = made(it.say("user", text("on")))
    assert [tool["name"] for tool in body["tools"]] == ["Write"]
    assert [part["text"] for part in body["system"]] == ["one", "two"]
    assert chat(it)["tools"][0]["function"]["name"] == "Write"


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ([text("on")], [{"content": "on", "role": "user"}, {"content": "two", "role": "system"}]),
        ([], [{"content": "two", "role": "system"}]),
    ],
)
def test_later_system_messages_of_a_chat_leave_the_cached_prefix_alone(
    asked: list[Json], more: list[Json]
) -> None:
    it = Wires().say("system", text("one"), text("more"))
    it.say("user", text("go")).say("assistant", text("yes"), call="r1")
    before = chat(it)["messages"]
    assert before[0] == {"content": "one\n\nmore", "role": "system"}
    it.say("system", text("two"))
    it.say("user", *asked)
    assert chat(it)["messages"] == [*before, *more]
    it.say("assistant", text("done"), call="r2")
    said = {"content": "done", "role": "assistant"}
    assert chat(it)["messages"] == [*before, *more, said]


def test_a_system_message_after_a_result_of_a_chat_follows_it() -> None:
    it = Wires().say("system", text("one")).say("user", text("go"))
    it.say("assistant", uses("t1"), call="r1").say("user", gives("t1", "found"))
    before = chat(it)["messages"]
    it.say("system", text("two"))
    assert chat(it)["messages"] == [*before, {"content": "two", "role": "system"}]


def marked(body: Json) -> list[Any]:
    """What carries a breakpoint, in the order of the request."""
    parts = [*body.get("tools", []), *body.get("system", [])]
    parts += [part for message in body["messages"] for part in message["content"]]
    return [
        part.get("name") or short(part) for part in parts if "cache_control" in part
    ]  # fmt: skip


@pytest.mark.parametrize(("calls", "more"), [(9, []), (10, ["do it"]), (30, ["do it"])])
def test_the_end_before_many_blocks_has_a_breakpoint_too(calls: int, more: list[str]) -> None:
    """The provider looks 20 blocks back, and a call and its result are two."""
    it = Wires().say("user", text("do it"))
    it.say("assistant", *(uses(f"t{one}") for one in range(calls)), call="r1")
    it.say("user", *(gives(f"t{one}") for one in range(calls)))
    body = made(it, breakpoints=True)
    assert marked(body)[:-1] == more
    assert "cache_control" in body["messages"][-1]["content"][-1]


def test_it_takes_the_place_of_the_one_after_the_tools() -> None:
    it = Wires().say("system", {"type": "tools", "tools": [TOOL]}, text("Be careful."))
    it.say("user", text("do it")).say("assistant", uses("t1"), call="r1")
    it.say("user", gives("t1")).say("assistant", *(uses(f"u{n}") for n in range(12)), call="r2")
    it.say("user", *(gives(f"u{n}") for n in range(12)))
    stub = replace(it.blocks[3], id="stub", replaces=it.blocks[3].id)
    it.wires[stub.id] = it.wires[it.blocks[3].id]
    it.blocks[3] = stub
    body = made(it, breakpoints=True)
    names = marked(body)
    assert len(names) == 4 and names[0] == "Be careful."


def test_breakpoints_stand_after_tools_system_the_last_replacement_and_the_end() -> None:
    it = Wires().say("system", {"type": "tools", "tools": [TOOL]}, text("Be careful."))
    it.say("user", text("do it")).say("assistant", uses("t1"), uses("t2"), call="r1")
    it.say("user", gives("t1"), gives("t2")).say("assistant", text("so"), call="r2")
    it.say("user", text("and now?"))
    assert marked(made(it, breakpoints=True)) == ["Read", "Be careful.", "and now?"]
    it.replaced(5, gives("t1", "[offloaded]"))
    assert marked(made(it, breakpoints=True)) == [
        "Read", "Be careful.", "t1=[offloaded]", "and now?"
    ]  # fmt: skip
    assert marked(made(it)) == []
    with_it = json.dumps(made(it, breakpoints=True), sort_keys=True)
    assert with_it.count('"ephemeral"') == 4


HOUR, FIVE = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}


@pytest.mark.parametrize(
    ("ttl", "controls"),
    [
        ("recorded", [FIVE] * 4),
        ("5m", [FIVE] * 4),
        ("1h", [HOUR] * 4),
        ("mixed", [HOUR, HOUR, FIVE, FIVE]),
    ],
)
def test_breakpoints_ask_for_the_ttl_of_the_policy(ttl: TTLSetting, controls: list[Json]) -> None:
    it = Wires().say("system", {"type": "tools", "tools": [TOOL]}, text("Be careful."))
    it.say("user", text("do it")).say("assistant", uses("t1"), call="r1").say("user", gives("t1"))
    it.say("assistant", text("so"), call="r2").say("user", text("on")).replaced(4, gives("t1", "."))
    body = render.anthropic(it.blocks, it.wire_of, ttl=ttl)
    parts = [*body["tools"], *body["system"]]
    parts += [part for message in body["messages"] for part in message["content"]]
    assert [part["cache_control"] for part in parts if "cache_control" in part] == controls
    sent = {name: body[name] for name in body if name != "notes"}
    assert problems({"model": "m", "max_tokens": 1, **sent}) == []


def test_a_breakpoint_never_stands_on_thinking_or_on_nothing() -> None:
    it = ask().say("assistant", text("a"), call="1").replaced(1, text("stub"))
    it.say("user", text("b")).say("assistant", thinks("x"), text("end"), call="2")
    it.say("user", text("  "))
    assert marked(made(it, breakpoints=True)) == ["stub", "end"]
    assert marked(render.anthropic([], it.wire_of)) == []


def test_no_breakpoint_comes_after_what_is_sent_once() -> None:
    it = ask().say("assistant", uses("t1"), call="1").say("user", gives("t1", "all of it"))
    it.say("assistant", text("so"), call="2")
    assert marked(render.anthropic(it.blocks, it.wire_of)) == ["so"]
    once = Ending(once=(it.blocks[2].position,))
    assert marked(render.anthropic(it.blocks, it.wire_of, once)) == ["Read"]


def test_what_is_appended_leaves_the_bytes_before_it() -> None:
    it = Wires().say("system", text("Be careful.")).say("user", text("do it"))
    before: list[bytes] = []
    for step in range(1, 12):
        it.say(
            "assistant", thinks("so"), uses(f"t{step}", path="ü"), uses(f"u{step}"), call=f"r{step}"
        )
        it.say("user", gives(f"t{step}")).say("user", gives(f"u{step}", [text("x")]))
        now = [json.dumps(m).encode() for m in made(it)["messages"]]
        assert now[: len(before)] == before
        before = now


def test_stubs_that_strategies_make_keep_inputs_objects() -> None:
    it = ask().say("assistant", uses("t1", "Write", path="a", content="x" * 900), call="r1")
    it.say("user", gives("t1", "y" * 900))
    use, result = it.blocks[1], it.blocks[2]
    stubs = {
        1: stand_in(use, input_stub(use), 9, "offload"),
        2: stand_in(result, "[offloaded: y]", 9, "offload"),
    }
    blocks = [stubs.get(place, block) for place, block in enumerate(it.blocks)]

    def wire_of(block: Block) -> Json:
        return it.wires.get(block.id) or block_of(block)

    body = render.anthropic(blocks, wire_of)
    assert problems({"model": "m", "max_tokens": 1, "messages": body["messages"]}) == []
    sent = body["messages"][1]["content"][0]["input"]
    assert sent["path"] == "a" and sent["offloaded"].startswith("[offloaded: content | ")
    arguments = render.openai(blocks, wire_of)["messages"][1]["tool_calls"][0]["function"]
    assert json.loads(arguments["arguments"]) == sent


def test_chat_shows_images_of_results_in_a_user_message() -> None:
    it = ask().say("assistant", uses("t1"), call="r1")
    it.say("user", gives("t1", [text("here"), {"type": "image", "source": PNG}]), text("look"))
    url = f"data:image/png;base64,{PNG['data']}"
    assert chat(it)["messages"][2:] == [
        {"content": "here", "role": "tool", "tool_call_id": "t1"},
        {"content": [{"image_url": {"url": url}, "type": "image_url"},
                     {"text": "look", "type": "text"}], "role": "user"},
    ]  # fmt: skip


def test_blocks_as_they_stand() -> None:
    it = ask().say("assistant", uses("t1"), call="r1").replaced(1, uses("t1", note="offloaded"))
    answer = render.as_blocks(it.blocks, it.wire_of)["blocks"]
    assert [(one["id"], one["message"], one["replaces"], one["refs"]) for one in answer] == [
        ("m1.0", 1, None, []), ("offload:m2.0", 2, "m2.0", ["m2.0"])
    ]  # fmt: skip
    assert answer[1]["block"] == uses("t1", note="offloaded") and answer[1]["response"] == "r1"


def test_notes_name_a_dozen_messages_and_count_the_rest() -> None:
    it = ask()
    for _ in range(20):
        it.say("user", text(" "))
    assert made(it)["notes"] == [
        "Empty text was left out (messages 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 8 more)."
    ]
