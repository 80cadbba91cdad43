"""Contexts for Gemini: valid whatever stands in them, with signatures where they came."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from compaction import render
from compaction.context.blocks import Ending
from compaction.render.gemini import NO_SIGNATURE
from tests.compaction.render.rendered import TOOL
from tests.compaction.wires import Wires, gives, odd_contexts, text, uses
from tests.gemini_rules import gemini as problems

Json = dict[str, Any]


def made(wires: Wires, ending: Ending | None = None) -> Json:
    """The body of a request; a context without any message gets the first."""
    body = render.gemini(wires.blocks, wires.wire_of, ending)
    contents = body["messages"] or [{"parts": [{"text": "hello"}], "role": "user"}]
    request = {"contents": contents}
    if "system" in body:
        request["systemInstruction"] = {"parts": body["system"]}
    if "tools" in body:
        request["tools"] = body["tools"]
    assert problems(request) == []
    return {**request, "notes": body["notes"]}


@settings(max_examples=300)
@given(odd_contexts())
def test_any_context_is_valid(odd: Wires) -> None:
    before = odd.bytes
    body = made(odd)
    assert json.dumps(made(odd)) == json.dumps(body), "equal blocks give equal bytes"
    calls = [
        one for content in body["contents"] for one in content["parts"] if "functionCall" in one
    ]
    assert len(calls) == sum(
        1 for b in odd.blocks if b.type == "tool_use" and b.role == "assistant"
    )
    assert odd.bytes == before


def worked() -> Wires:
    it = Wires().say("system", text("Be brief.")).say("user", text("Go."))
    signed = {**uses("c1"), "thought_signature": "U0lHTkVE"}
    it.say("assistant", text("I look."), signed, uses("c2"), call="1")
    return it.say("user", gives("c2", "two"), {**gives("c1", "one"), "is_error": True})


def test_calls_and_their_results() -> None:
    body = made(worked())
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    said, asked, answered = body["contents"]
    assert said == {"parts": [{"text": "Go."}], "role": "user"}
    name = asked["parts"][1]["functionCall"]["name"]
    first, second = ({"args": uses("c1")["input"], "id": id, "name": name} for id in ("c1", "c2"))
    assert asked["role"] == "model"
    assert asked["parts"] == [
        {"text": "I look."},
        {"functionCall": first, "thoughtSignature": "U0lHTkVE"},
        {"functionCall": second},
    ]
    responses = [part["functionResponse"] for part in answered["parts"]]
    assert [(one["id"], one["name"]) for one in responses] == [("c1", name), ("c2", name)]
    assert [one["response"] for one in responses] == [{"error": "one"}, {"output": "two"}]


def test_a_call_without_a_signature_says_so_once_a_turn() -> None:
    it = Wires().say("user", text("Go.")).say("assistant", uses("c1"), uses("c2"), call="1")
    parts = made(it)["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == [NO_SIGNATURE, None]


def test_an_edited_part_has_no_signature() -> None:
    signed = {**text("All done."), "thought_signature": "U0lHTkVE"}
    it = Wires().say("user", text("Go.")).say("assistant", signed, call="1")
    it.say("user", text("And?"))
    assert made(it)["contents"][1]["parts"][0]["thoughtSignature"] == "U0lHTkVE"
    place = next(at for at, block in enumerate(it.blocks) if block.role == "assistant")
    it.blocks[place] = replace(it.blocks[place], replaces=(it.blocks[place].id,))
    assert "thoughtSignature" not in made(it)["contents"][1]["parts"][0]


def test_a_later_system_message_stays_in_its_place() -> None:
    it = worked().say("system", text("Hurry."))
    body = made(it)
    assert body["contents"][-1]["parts"][-1] == {"text": "Hurry."}
    assert any("later system message" in note for note in body["notes"])


@pytest.mark.parametrize(
    ("name", "sent"), [("Read", "Read"), ("1st", "_1st"), ("a b", None), ("9" * 64, "_" + "9" * 63)]
)
def test_names_of_functions(name: str, sent: str | None) -> None:
    it = Wires().say("system", {"type": "tools", "tools": [{**TOOL, "name": name}]})
    it.say("user", text("Go."))
    [declared] = made(it)["tools"][0]["functionDeclarations"]
    assert sent is None or declared["name"] == sent
    assert declared["parametersJsonSchema"] == {"type": "object"}


def test_images() -> None:
    def image(kind: str) -> Json:
        source = {"type": "base64", "media_type": kind, "data": "aGk="}
        return {"type": "image", "source": source}

    far = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    it = Wires().say("user", image("image/png"), image("image/gif"), far)
    it.say("assistant", uses("c1"), call="1").say("user", gives("c1", [image("image/png")]))
    first, _, last = made(it)["contents"]
    assert first["parts"][0] == {"inlineData": {"data": "aGk=", "mimeType": "image/png"}}
    assert first["parts"][2] == {"text": "[image https://example.org/a.png]"}
    assert "functionResponse" in last["parts"][0] and "inlineData" in last["parts"][1]


def test_the_recitation_ends_the_newest_user_message() -> None:
    body = made(worked(), Ending(text="Mind the port."))
    assert body["contents"][-1]["parts"][-1] == {"text": "Mind the port."}
