"""The judge has teeth: each rule refuses what breaks it, and lets through what does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openai_rules import openai
from tests.provider_rules import anthropic

Json = dict[str, Any]
HELLO = {"role": "user", "content": "hello"}
USE = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
THOUGHT = {"type": "thinking", "thinking": "so", "signature": "sig"}


def text(text: str, **more: Any) -> Json:
    return {"type": "text", "text": text, **more}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def body(*messages: Json, **more: Any) -> Json:
    return {"model": "m", "max_tokens": 1, "messages": list(messages), **more}


def set_to(effort: str, *blocks: Json) -> Json:
    return {"role": "system", "content": list(blocks), "output_config": {"effort": effort}}


NO_TOOL = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "f"}}
CACHED = {"cache_control": {"type": "ephemeral"}}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}}


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        (body(HELLO), None),
        (body(HELLO, assistant(THOUGHT, USE), user(RESULT, text("and"))), None),
        (body(), "at least one"),
        (body(HELLO, notes=[]), "notes"),
        (body(assistant(text("a"))), "user role"),
        (body(HELLO, HELLO), "alternate"),
        (body(user(text(" \n"))), "non-whitespace"),
        (body(user()), "non-empty content"),
        (body(user(text("a", index=0))), "extra inputs"),
        (body(user(THOUGHT)), "not permitted in user"),
        (body(HELLO, assistant(IMAGE)), "not permitted in assistant"),
        (body(user(text("\ud800"))), "UTF-8"),
        (body(HELLO, assistant(text("a "))), "trailing whitespace"),
        (body(HELLO, assistant(text("a"), THOUGHT)), "final block"),
        (body(HELLO, assistant({**THOUGHT, "signature": ""}, text("a"))), "signature"),
        (body(HELLO, assistant(USE)), "without `tool_result`"),
        (body(HELLO, assistant(USE), user(text("b"))), "without `tool_result`"),
        (body(user(RESULT)), "unexpected `tool_use_id`"),
        (body(HELLO, assistant(USE), user(RESULT, RESULT)), "single result"),
        (body(HELLO, assistant(USE), user(text("b"), RESULT)), "come first"),
        (body(HELLO, assistant(USE, USE), user(RESULT)), "unique"),
        (body(HELLO, assistant({**USE, "id": "a.b"}), user(RESULT)), "pattern"),
        (body(HELLO, assistant({**USE, "input": "x"}), user(RESULT)), "object"),
        (body(HELLO, assistant(USE), user({**RESULT, "content": "", "is_error": True})), "empty"),
        (body(HELLO, assistant(USE), user({**RESULT, "content": [IMAGE], "is_error": True})),
         "type `text`"),
        (body(user(*[text("a", **CACHED)] * 5)), "maximum of 4"),
        (body(HELLO, assistant({**THOUGHT, **CACHED}, text("a"))), "cache_control"),
        (body(HELLO, tools=[{"name": "a b", "input_schema": {"type": "object"}}]), "name"),
        (body(HELLO, tools=[{"name": "a", "input_schema": {}}]), "object"),
        (body(HELLO, tools=[{"name": "a", "input_schema": {"type": "object"}}] * 2), "unique"),
        (body(HELLO, system=[IMAGE]), "only text"),
        (body(HELLO, set_to("low"), model="claude-opus-5"), None),
        (body(HELLO, set_to("lowest"), model="claude-opus-5"), "should be one of"),
        (body({**HELLO, "output_config": {"effort": "low"}}), "only on role 'system'"),
        (body(HELLO, set_to("low", NO_TOOL), model="claude-opus-5"), "no tool f"),
        (body(user({"type": "image", "source": {"type": "base64", "media_type": "image/bmp",
                                                "data": "AA=="}})), "media_type"),
        (body(HELLO, assistant(USE), user(RESULT), thinking={"type": "enabled"}), "start with"),
    ],
)  # fmt: skip
def test_messages_api(given: Json, reply: str | None) -> None:
    found = anthropic(given)
    assert (found == []) if reply is None else any(reply in one for one in found), found


CALL = {"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {"role": "tool", "tool_call_id": "t1", "content": "x"}


@pytest.mark.parametrize(
    ("messages", "reply"),
    [
        ([HELLO, CALLS, ANSWER], None),
        ([HELLO, CALLS], "followed by tool messages"),
        ([HELLO, CALLS, HELLO], "followed by tool messages"),
        ([HELLO, ANSWER], "must answer"),
        ([HELLO, CALLS, ANSWER, ANSWER], "must answer"),
        ([{"role": "assistant", "content": None}], "string or parts"),
        ([HELLO, {**CALLS, "tool_calls": []}], "too short"),
        ([HELLO, {**CALLS, "tool_calls": [{**CALL, "id": "x" * 41}]}], "1 to 40"),
        ([HELLO, CALLS, {**ANSWER, "content": [IMAGE]}], "not permitted"),
        ([{**HELLO, "name": "x", "extra": 1}], "unknown field"),
        ([], "at least one"),
    ],
)
def test_chat_completions(messages: list[Json], reply: str | None) -> None:
    found = openai({"messages": messages})
    assert (found == []) if reply is None else any(reply in one for one in found), found
