"""Contexts become requests that a provider accepts: turns and results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.compaction.render.rendered import TOOL, Json, ask, chat, made, short
from tests.compaction.wires import PDF, PNG, Wires, gives, text, thinks, uses


def spoken(body: Json) -> list[tuple[str, list[Any]]]:
    """Messages as (role, [short form of each part])."""
    return [(m["role"], [short(part) for part in m["content"]]) for m in body["messages"]]


def test_a_plain_conversation_goes_out_as_it_came() -> None:
    it = Wires().say("system", {"type": "tools", "tools": [TOOL]}, text("Be careful."))
    it.say("user", text("do it")).say("assistant", text("I look."), uses("t1", path="a"), call="r1")
    it.say("user", gives("t1", "content \n", is_error=False))
    body = made(it)
    assert body == {
        "notes": [],
        "system": [{"text": "Be careful.", "type": "text"}],
        "tools": [{"description": "reads", "input_schema": {"type": "object"}, "name": "Read"}],
        "messages": [
            {"content": [{"text": "do it", "type": "text"}], "role": "user"},
            {"content": [{"text": "I look.", "type": "text"},
                         {"id": "t1", "input": {"path": "a"}, "name": "Read", "type": "tool_use"}],
             "role": "assistant"},
            {"content": [{"content": "content \n", "is_error": False, "tool_use_id": "t1",
                          "type": "tool_result"}], "role": "user"},
        ],
    }  # fmt: skip
    assert chat(it) == {
        "notes": [],
        "messages": [
            {"content": "Be careful.", "role": "system"},
            {"content": "do it", "role": "user"},
            {"content": "I look.", "role": "assistant", "tool_calls": [
                {"function": {"arguments": '{"path":"a"}', "name": "Read"}, "id": "t1",
                 "type": "function"}]},
            {"content": "content \n", "role": "tool", "tool_call_id": "t1"},
        ],
        "tools": [{"function": {"description": "reads", "name": "Read",
                                "parameters": {"type": "object"}}, "type": "function"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("it", "turns", "noted"),
    [
        (
            ask().say("user", text("and that")),
            [("user", ["do it", "and that"])],
            "",
        ),
        (
            ask().say("user", text(" \n"), text("")),
            [("user", ["do it"])],
            "Empty text was left out (message 2).",
        ),
        (
            Wires().say("assistant", text("hello"), call="r1").say("user", text("hi")),
            [("user", ["[The conversation as it is kept begins with the assistant.]"]),
             ("assistant", ["hello"]), ("user", ["hi"])],
            "begins with the assistant",
        ),
        (
            ask().say("assistant", text("done \n\n"), call="r1"),
            [("user", ["do it"]), ("assistant", ["done"])],
            "Whitespace at the end of the last message was cut (message 2).",
        ),
        (
            ask().say("assistant", uses("t1"), uses("t2"), call="r1").say("user", gives("t2")),
            [("user", ["do it"]), ("assistant", ["t1?", "t2?"]),
             ("user", ["t1=[No result of this call was recorded.]", "t2=a result"])],
            "A call without a result was given a default result (message 2).",
        ),
        (
            ask().say("assistant", uses("t1"), call="r1"),
            [("user", ["do it"]), ("assistant", ["t1?"]),
             ("user", ["t1=[No result of this call was recorded.]"])],
            "default result",
        ),
        (
            # The call has left, its result has not.
            ask().say("user", gives("t1", "orphaned")),
            [("user", ["do it", "[A result, whose call is no longer in this context.]\norphaned"])],
            "A result without its call was sent as text (message 2).",
        ),
        (
            ask().say("assistant", uses("t1"), call="r1").say("user", gives("t1", "one"))
            .say("user", gives("t1", "two")),
            [("user", ["do it"]), ("assistant", ["t1?"]),
             ("user", ["t1=one", "[Another result, for a call that already has one.]\ntwo"])],
            "A second result of a call was sent as text (message 4).",
        ),
        (
            # People speak while a tool runs: results come first all the same.
            ask().say("assistant", uses("t1"), call="r1").say("user", text("hurry"))
            .say("user", gives("t1")),
            [("user", ["do it"]), ("assistant", ["t1?"]), ("user", ["t1=a result", "hurry"])],
            "",
        ),
        (
            # One response recorded in pieces, results between them.
            ask().say("assistant", thinks("so"), call="r1").say("assistant", uses("t1"), call="r1")
            .say("user", gives("t1", "one")).say("assistant", uses("t2"), call="r1")
            .say("user", gives("t2", "two")).say("assistant", text("done"), call="r2"),
            [("user", ["do it"]), ("assistant", ["thinking", "t1?", "t2?"]),
             ("user", ["t1=one", "t2=two"]), ("assistant", ["done"])],
            "ends with the assistant",
        ),
        (
            ask().say("assistant", uses("t1"), call="r1").say("user", text("stop"))
            .say("assistant", text("stopped"), call="r2").say("user", gives("t1", "late"))
            .say("assistant", text("more"), call="r3").say("user", text("yes")),
            [("user", ["do it"]), ("assistant", ["t1?"]), ("user", ["t1=late", "stop"]),
             ("assistant", ["stopped", "more"]), ("user", ["yes"])],
            "A late result was moved up to its call (message 5).",
        ),
        (
            # A repeated id, in another response.
            ask().say("assistant", uses("t1"), call="r1").say("user", gives("t1", "one"))
            .say("assistant", uses("t1"), call="r2").say("user", gives("t1", "two")),
            [("user", ["do it"]), ("assistant", ["t1?"]), ("user", ["t1=one"]),
             ("assistant", ["t1_2_3a7a31c3?"]), ("user", ["t1_2_3a7a31c3=two"])],
            "Ids of tool calls were changed to valid ones (message 4).",
        ),
        (
            Wires().say("user", text("a summary"), kind="summary")
            .say("assistant", text("I go on."), call="r9").say("user", text("good")),
            [("user", ["a summary"]), ("assistant", ["I go on."]), ("user", ["good"])],
            "",
        ),
        (
            ask().say("user", {"type": "other", "value": 7}, {"type": "image", "source": None}),
            [("user", ["do it", '{"type":"other","value":7}', "[image]"])],
            "An image or document that cannot be sent became a bracketed word (message 2).",
        ),
        (
            ask().say("assistant", text("see"), {"type": "image", "source": PNG}, call="r1")
            .say("user", {"type": "image", "source": PNG}, {"type": "document", "source": PDF}),
            [("user", ["do it"]), ("assistant", ["see", "[image image/png]"]),
             ("user", ["image", "document"])],
            "became a bracketed word (message 2)",
        ),
        (
            ask().say("tool", text("without a call")),
            [("user", ["do it", "without a call"])],
            "",
        ),
    ],
)  # fmt: skip
def test_normalised(it: Wires, turns: list[tuple[str, list[Any]]], noted: str) -> None:
    body = made(it)
    assert spoken(body) == turns
    if noted:
        assert any(noted in note for note in body["notes"]), body["notes"]
    else:
        assert body["notes"] == []
    chat(it)


def test_only_signed_thinking_goes_back_and_never_last() -> None:
    redacted = {"type": "redacted_thinking", "data": "enc"}
    it = ask().say(
        "assistant", thinks("signed"), redacted, thinks("not", None), text("a"), call="1"
    )
    it.say("user", text("b")).say("assistant", text("c"), thinks("cut short"), call="2")
    it.say("user", text("d"))
    body = made(it)
    assert body["messages"][1]["content"][:2] == [
        {"signature": "sig", "thinking": "signed", "type": "thinking"},
        {"data": "enc", "type": "redacted_thinking"},
    ]
    assert spoken(body)[1][1] == ["thinking", "redacted_thinking", "a"]
    assert spoken(body)[3] == ("assistant", ["c"])
    assert body["notes"] == [
        "Thinking was left out: it has no signature (message 2).",
        "Thinking at the end was left out (message 4).",
    ]
    assert "thinking" not in json.dumps(chat(it)["messages"])


def test_unknown_fields_stay_here() -> None:
    it = ask().say(
        "assistant", text("a", citations=None, id="x", cache_control={"type": "ephemeral"}),
        {**uses("t1"), "caller": {"type": "direct"}, "index": 3}, call="r1",
    )  # fmt: skip
    it.say("user", {**gives("t1"), "name": "Read", "toolUseResult": {}})
    stored = it.bytes
    body = made(it)
    assert [sorted(part) for part in body["messages"][1]["content"]] == [
        ["text", "type"], ["id", "input", "name", "type"]
    ]  # fmt: skip
    assert sorted(body["messages"][2]["content"][0]) == ["content", "tool_use_id", "type"]
    assert it.bytes == stored


@pytest.mark.parametrize(
    ("content", "error", "sent"),
    [
        (None, None, {"content": ""}),
        ("", True, {"content": "The tool failed without a message.", "is_error": True}),
        ([], None, {"content": ""}),
        (" \n", None, {"content": ""}),
        ({"a": 1}, None, {"content": '{"a":1}'}),
        ([text("a", extra=1), "b", text("")], None,
         {"content": [{"text": "a", "type": "text"}, {"text": "b", "type": "text"}]}),
        ([{"type": "image", "source": PNG}], True,
         {"content": [{"source": {k: PNG[k] for k in sorted(PNG)}, "type": "image"}]}),
        ([{"type": "search", "x": 1}], None,
         {"content": [{"text": '{"type":"search","x":1}', "type": "text"}]}),
        ("half \ud800", "yes", {"content": "half \ufffd"}),
    ],
)  # fmt: skip
def test_results(content: Any, error: Any, sent: Json) -> None:
    more = {} if error is None else {"is_error": error}
    it = ask().say("assistant", uses("t1"), call="r1").say("user", gives("t1", content, **more))
    expected = {**sent, "tool_use_id": "t1", "type": "tool_result"}
    assert made(it)["messages"][2]["content"] == [expected]
    chat(it)


def test_ids_and_names_that_are_refused_change_alike_on_both_sides() -> None:
    it = Wires().say("system", {"type": "tools", "tools": [{**TOOL, "name": "./run.sh"}]})
    it.say("user", text("go")).say("assistant", uses("call#3.0", "./run.sh"), call="r1")
    it.say("user", gives("call#3.0")).say("assistant", uses("x" * 70), call="r2")
    it.say("user", gives("x" * 70))
    body, other = made(it), chat(it)
    use, result = body["messages"][1]["content"][0], body["messages"][2]["content"][0]
    assert use["id"] == result["tool_use_id"] and use["id"].startswith("call_3_0_")
    assert use["name"] == body["tools"][0]["name"] and use["name"].startswith("_run_sh_")
    assert body["messages"][3]["content"][0]["id"] == "x" * 70
    assert len(other["messages"][3]["tool_calls"][0]["id"]) == 40
    assert other["tools"][0]["function"]["name"] == use["name"]
