"""Calls and results that smolagents 1.26 restates as text are read as calls and results."""

from __future__ import annotations

from typing import Any

import pytest

from contextlab.client.forms.chat import FORM

Json = dict[str, Any]


def texts(role: str, *parts: str) -> Json:
    return {"role": role, "content": [{"type": "text", "text": part} for part in parts]}


def restated(*calls: tuple[str, Any], said: str = "") -> Json:
    functions = [{"name": "read_part", "arguments": given} for _, given in calls]
    made = [
        {"id": name, "type": "function", "function": function}
        for (name, _), function in zip(calls, functions, strict=True)
    ]
    return texts("assistant", f"{said}Calling tools:\n{made}")


def asked(*messages: Json, **more: Any) -> list[Json]:
    begin = [texts("system", "Be brief."), texts("user", "Read it.")]
    found = FORM.asked({"model": "m", "messages": [*begin, *messages], **more})["messages"]
    assert found[:2] == begin
    return list(found[2:])


def test_a_call_and_its_result_stated_as_text_are_blocks() -> None:
    observed = texts("user", "Observation:\n1 'kelp'")
    reply, results = asked(
        restated(("c1", {"number": 1, "of": "it's"}), said="I read.\n"), observed
    )
    call = {"type": "tool_use", "id": "c1", "name": "read_part"}
    assert reply["role"] == "assistant"
    assert reply["content"] == [
        {"type": "text", "text": "I read."},
        {**call, "input": {"number": 1, "of": "it's"}},
    ]
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "Observation:\n1 'kelp'"}
    assert results == {"role": "user", "content": [result]}


def test_the_first_of_several_calls_has_the_results_of_all_and_an_error_is_one() -> None:
    failed = texts("user", "Call id: c1\nError:\nno such part")
    reply, results = asked(restated(("c1", {}), ("c2", {})), failed)
    assert [one["id"] for one in reply["content"]] == ["c1", "c2"]
    assert [(one["tool_use_id"], one["content"]) for one in results["content"]] == [
        ("c1", "Call id: c1\nError:\nno such part"), ("c2", ""),
    ]  # fmt: skip


def test_code_that_is_stated_again_leaves_the_reply_as_the_model_gave_it() -> None:
    code = restated(("call_2", "read_part(1)"), said="Go.\n<code>read_part(1)</code>\n")
    observed = texts("user", "Observation:\n1")
    reply, results = asked(code, observed, stop=["Observation:", "</code>"])
    assert reply["content"] == [{"type": "text", "text": "Go.\n<code>read_part(1)"}]
    echo, result = results["content"]
    assert echo["text"].startswith("Calling tools:\n[{") and result == observed["content"][0]
    assert asked(code, observed)[0]["content"][0]["text"].endswith("</code>"), "no stop cut it"


@pytest.mark.parametrize(
    "messages",
    [
        [restated(("c1", {}))],
        [restated(("c1", {})), texts("user", "Thanks.")],
        [texts("assistant", "Calling tools:\n[{'id': 1}]"), texts("user", "Observation:\n1")],
        [texts("assistant", "Calling tools:\n[{(]}]"), texts("user", "Observation:\n1")],
        [texts("assistant", "Calling tools:\n[{" * 2 + "}]"), texts("user", "Observation:\n1")],
        [texts("user", "Calling tools:\n[{'id': 1}]"), texts("user", "Observation:\n1")],
    ],
)
def test_other_texts_stay_as_they_are(messages: list[Json]) -> None:
    assert asked(*messages) == messages


def test_a_history_begins_as_it_began_when_it_grows() -> None:
    history = []
    for number in range(4):
        call = restated((f"c{number}", {"number": number}))
        history += [call, texts("user", f"Observation:\n{number}")]
    whole = asked(*history)
    assert all(asked(*history[:end]) == whole[:end] for end in range(0, 8, 2))
