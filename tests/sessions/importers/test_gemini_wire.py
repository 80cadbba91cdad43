"""Gemini's contents as messages: from REST and from the SDK, with and without ids of calls."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.context.session import Usage
from sessions.importers.gemini_wire import gemini_blocks, gemini_messages, gemini_tools
from sessions.importers.reported import any_usage

Json = dict[str, Any]


def test_a_models_content_is_the_assistants() -> None:
    call = {"functionCall": {"name": "read", "args": {"path": "a"}}, "thoughtSignature": "U0lH"}
    parts = [
        {"text": "Hm", "thought": True},
        {"text": "I look."},
        call,
        call,
        {"text": ""},
        {"thoughtSignature": "U0lH"},
    ]
    [made] = gemini_messages([{"role": "model", "parts": parts, "at": 5}])
    used = {"type": "tool_use", "name": "read", "input": {"path": "a"}, "thought_signature": "U0lH"}
    assert made == {
        "role": "assistant",
        "at": 5,
        "content": [
            {"type": "thinking", "thinking": "Hm"},
            {"type": "text", "text": "I look."},
            {**used, "id": "read"},
            {**used, "id": "read#2"},
        ],
    }


@pytest.mark.parametrize(
    ("response", "content", "failed"),
    [
        ({"output": "one"}, "one", {}),
        ({"error": "no"}, "no", {"is_error": True}),
        ({"result": 7}, "7", {}),
        ({"output": [1]}, "[1]", {}),
    ],
)
def test_results(response: Json, content: str, failed: Json) -> None:
    given = {"function_response": {"name": "read", "response": response, "id": None}}
    second = {"functionResponse": {"name": "read", "response": response}}
    made = gemini_blocks([given, second])
    first = {"type": "tool_result", "tool_use_id": "read", "content": content, **failed}
    assert made == [first, {**first, "tool_use_id": "read#2"}]


def test_parts_of_a_streamed_answer_are_one_turn_and_results_need_no_ids() -> None:
    def content(role: str | None, **part: Json) -> Json:
        return {"role": role, "parts": [part]} if role else {"parts": [part]}

    def call(name: str, **more: Any) -> Json:
        return content("model", functionCall={"name": name, "args": {}, **more})

    def response(name: str, **more: Any) -> Json:
        return content("user", functionResponse={"name": name, "response": {"result": "x"}, **more})

    made = gemini_messages(
        [
            *(call("read", id="c1"), call("read"), call("read"), call("list", id="c2")),
            content(None, text=""),
            *(response("list"), response("read", id="c1"), response("read"), response("read")),
            *(call("read"), response("read"), response("read")),
            {"role": "user", "content": "ours"},
        ]
    )
    ids = [
        block.get("id", block.get("tool_use_id"))
        for message in made
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    asked = ["c1", "read", "read#2", "c2"]
    assert ids == [*asked, "c2", "c1", "read", "read#2", "read", "read", "read"]
    assert made[4] == {"role": "user", "content": []}
    assert made[-1] == {"role": "user", "content": "ours"}


def test_media_and_what_is_unknown() -> None:
    made = gemini_blocks(
        [
            {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
            {"file_data": {"mime_type": "application/pdf", "file_uri": "https://a.example/b"}},
            {"executableCode": {"code": "1"}, "text": None},
        ]
    )
    assert [one["type"] for one in made] == ["image", "document", "other"]
    assert made[1]["source"] == {"type": "url", "url": "https://a.example/b"}


def test_tools() -> None:
    schema = {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}
    declared = [{"name": "a", "description": "d", "parameters": schema}, {"name": "b"}]
    assert gemini_tools({"functionDeclarations": declared}) == [
        {
            "name": "a",
            "description": "d",
            "input_schema": {"type": "object", "properties": {"type": {"type": "string"}}},
        },
        {"name": "b", "description": "", "input_schema": {"type": "object"}},
    ]
    assert gemini_tools({"name": "c"}) == [{"name": "c"}]


def test_usage() -> None:
    raw = {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7}
    raw |= {"thoughtsTokenCount": 3, "totalTokenCount": 110}
    expected = Usage(uncached=40, cache_read=60, output=10, reasoning=3)
    assert any_usage(raw) == (expected, True)
    snake = {"prompt_token_count": 100, "total_token_count": 90}
    assert any_usage(snake).reconciles is False
