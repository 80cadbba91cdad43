"""Answers and requests that break their API's own rules pass as they are, and stop no agent."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contextlab.client.agent_call import AgentCall
from contextlab.client.forms import FORMS, ApiForm
from contextlab.client.relay import Relay
from contextlab.proxy.gemini import FORM as GEMINI

Json = dict[str, Any]
MESSAGES, CHAT = FORMS["anthropic", "v1/messages"], FORMS["openai", "chat/completions"]


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        (MESSAGES, {"content": ["text"]}),
        (MESSAGES, {"content": [{"type": "tool_use", "name": "read_back", "input": {}}]}),
        (CHAT, {"choices": [{"message": {"content": 7, "tool_calls": True}}]}),
    ],
)
def test_an_answer_that_no_api_gives_is_no_reply(form: ApiForm, answer: Json) -> None:
    assert form.known_reply(answer) is None


@pytest.mark.parametrize(
    ("form", "event"),
    [
        (MESSAGES, {"type": "content_block_start"}),
        (MESSAGES, {"type": "content_block_delta", "index": {}}),
        (CHAT, {"choices": [{"delta": {"tool_calls": ["x"]}}]}),
    ],
)
def test_an_event_that_no_api_sends_passes(form: ApiForm, event: Json) -> None:
    call = cast(AgentCall, SimpleNamespace(hides=lambda _: False, has_hidden=False))
    [made] = Relay(form, call, {"model": "m", "messages": []}).take(json.dumps(event).encode())
    assert json.loads(made.partition(b"data: ")[2]) == event


@pytest.mark.parametrize(
    "contents", [[{"parts": [{"text": "a"}]}, "b"], [{"parts": [{"text": "a"}, None]}]]
)
def test_contents_that_are_no_objects_are_not_managed(contents: Any) -> None:
    assert GEMINI.unmanaged({"contents": contents}) == "it has contents that are no objects"


def test_functions_without_names_are_sent_as_they_are() -> None:
    tools = [{"functionDeclarations": [{"description": "x"}, None]}]
    sent = GEMINI.sent({"tools": tools}, {"messages": [], "tools": tools})
    assert sent["tools"] == [{"functionDeclarations": [{"description": "x"}]}]
