"""What the second readers find in logs of each agent, without the importers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sessions.second_reader.reading import lines, read, shown

AIDER = """
# aider chat started at 2026-03-01 09:00:00

> Main model: gpt-4.1 with diff edit format  

#### /add boat.py  
> Added boat.py to the chat  

#### rename the boat  
#### to "Heron"  

Here is

> a quotation

> Tokens: 3.2k sent, 66 received.  
> Commit 1234567 feat: rename the boat  

#### Run it? (Y)es/(N)o [Yes]: all  

Interrupted an
> ^C again to exit  
# aider chat started at 2026-03-02 09:00:00
#### /ask why?  
Because.
"""


def test_aider() -> None:
    first, second = read("aider", AIDER.encode())
    assert [shown(one.context) for one in first.steps] == [
        'text rename the boat to "Heron"',
        'text rename the boat to "Heron" | text Here is > a quotation',
    ]
    assert shown(second.end) == "text /ask why? | text Because."
    assert [one.line for one in second.steps] == [25]


def test_the_screen_of_cline() -> None:
    def say(form: str, text: str, **more: Any) -> dict[str, Any]:
        return {"ts": 1, "type": "say", "say": form, "text": text, **more}

    request = '{"tokensIn": 6, "tokensOut": 2, "cacheReads": 40, "cacheWrites": 3}'
    items = [
        say("text", "Hoist."),
        say("api_req_started", request),
        say("reasoning", "Ropes."),
        say("text", "Tha", partial=True),
        say("tool", '{"tool": "readFile", "path": "ropes.txt", "content": "hemp"}'),
        say("user_feedback", "Slower."),
        say("completion_result", "Up."),
    ]
    [found] = read("cline", json.dumps(items).encode())
    read_file = 'tool_use readFile {"path": "ropes.txt"}'
    assert [(shown(one.context), one.billed) for one in found.steps] == [
        ("text Hoist.", (6, 40, 3, 2, 0)),
        (f"text Hoist. | thinking Ropes. | {read_file} | text Slower.", None),
    ]


def test_copilot() -> None:
    def event(form: str, **data: Any) -> dict[str, Any]:
        return {"type": form, "data": data}

    usage = {"inputTokens": 9, "cacheReadTokens": 4, "outputTokens": 2}
    totals = {"m": {"requests": {"count": 1}, "usage": usage}}
    call = {"apiCallId": "a1", "toolRequests": [{"name": "look", "arguments": {"at": "sea"}}]}
    [found] = read(
        "copilot-cli",
        lines(
            event("system.message", content="You sail."),
            event("user.message", content="Go.", transformedContent="<now>9</now> Go."),
            event("assistant.message", **call, reasoningText="Hm."),
            event("assistant.message", apiCallId="a1", content="Going.", toolRequests=[]),
            event("tool.execution_complete", success=False, error={"message": "fog"}),
            event("session.shutdown", modelMetrics=totals),
        ),
    )
    [step] = found.steps
    assert (shown(step.context), step.billed) == (
        "text You sail. | text <now>9</now> Go.",
        (5, 4, 0, 2, 0),
    )
    said = found.end[2:]
    assert shown(said) == (
        'thinking Hm. | tool_use look {"at": "sea"} | text Going. | tool_result fog'
    )


def test_a_stream_of_langgraph() -> None:
    chunks = [
        {"thread_id": "t", "id": "u", "role": "user", "content": "Look."},
        {"id": "a", "content": "I "},
        {"id": "a", "content": "look.", "tool_calls": [{"name": "look", "args": {}}]},
        {"id": "a", "tool_call_chunks": [{"args": '{"at": '}]},
        {"id": "a", "tool_call_chunks": [{"args": '"sea"}'}]},
        {"id": "e", "content": ""},
        {"id": "r", "tool_call_id": "c", "content": "wet"},
        {"id": "b", "reasoning_content": "Hm.", "content": "It is wet."},
    ]
    stream = "\n\n".join(f"event: x\ndata: {json.dumps(one)}" for one in chunks)
    [found] = read("langgraph-thread", f"{stream}\n\nevent: x\ndata: {{".encode())
    assert [shown(one.context) for one in found.steps] == [
        "text Look.",
        'text Look. | text I look. | tool_use look {"at": "sea"} | tool_result wet',
    ]
    assert shown(found.end[-2:]) == "thinking Hm. | text It is wet."


def test_a_thread_of_langgraph() -> None:
    counts = {"input_tokens": 9, "output_tokens": 2, "input_token_details": {"cache_read": 4}}
    used = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    calls = [{"id": "c1", "name": "look", "args": {}}, {"id": "c2", "name": "dive", "args": {}}]
    messages = [
        {"type": "human", "content": "Look."},
        {"type": "ai", "content": [used], "tool_calls": calls, "usage_metadata": counts},
        {"type": "ai", "content": ""},
    ]
    [found] = read("langgraph-thread", json.dumps({"values": {"messages": messages}}).encode())
    assert [one.billed for one in found.steps] == [(5, 4, 0, 2, 0), None]
    assert shown(found.end) == "text Look. | tool_use look {} | tool_use dive {}"


@pytest.mark.parametrize(
    ("total", "expected"),
    [(12, (6, 4, 0, 2, 0)), (16, (10, 4, 0, 2, 0)), (None, (6, 4, 0, 2, 0))],
    ids=["input has the cache", "input is beside the cache", "no total"],
)
def test_inspect(total: int | None, expected: tuple[int, ...]) -> None:
    usage = {"input_tokens": 10, "input_tokens_cache_read": 4, "output_tokens": 2}
    usage |= {} if total is None else {"total_tokens": total}

    def event(usage: Any, **message: Any) -> dict[str, Any]:
        output = {"choices": [{"message": message}], "usage": usage}
        return {"event": "model", "output": output}

    sample = {
        "attachments": {"0af": "How deep?"},
        "messages": [
            {"role": "user", "content": "attachment://0af"},
            {"role": "assistant", "id": "m1", "content": "Deep."},
            {"role": "tool", "content": "", "error": {"message": "no lead"}},
        ],
        "events": [event({}, id="s", content="Deep."), event(usage, id="m1", content="Deep.")],
    }
    [found] = read("inspect-log", json.dumps({"eval": {}, "samples": [sample]}).encode())
    [step] = found.steps
    assert (shown(step.context), step.billed) == ("text How deep?", expected)
    assert shown(found.end[1:]) == "text Deep. | tool_result no lead"


def test_qwen_code_goes_back_and_is_compressed() -> None:
    def record(form: str, uuid: str, parent: str | None, *parts: Any, **more: Any) -> Any:
        known = {"sessionId": "q", "uuid": uuid, "parentUuid": parent, "type": form}
        return {**known, "message": {"parts": parts}, **more}

    counts = {"promptTokenCount": 9, "cachedContentTokenCount": 4, "candidatesTokenCount": 2}
    history = [{"role": "user", "parts": [{"text": "It is wet."}]}]
    call = {"functionCall": {"name": "look", "args": {}}}
    result = {"functionResponse": {"name": "look", "response": {"error": "fog"}}}
    [found, side] = read(
        "qwen-code",
        lines(
            record("user", "1", None, {"text": "Look."}),
            record("assistant", "2", "1", call, usageMetadata=counts),
            record("tool_result", "3", "2", result),
            record("assistant", "4", "1", {"text": "No."}),
            record("assistant", "5", "3", {"text": "Fog."}),
            record(
                *("system", "6", "5"),
                subtype="chat_compression",
                systemPayload={"compressedHistory": history},
            ),
            record("assistant", "7", "6", {"text": "Yes.", "thought": True}),
            record("assistant", "8", None, {"text": "Aside."}, agentId="a"),
        ),
    )
    looked = "text Look. | tool_use look {} | tool_result fog"
    contexts = [shown(one.context) for one in found.steps]
    assert contexts == ["text Look.", "text Look.", looked, "text It is wet."]
    assert found.steps[0].billed == (5, 4, 0, 2, 0)
    assert (found.compactions, shown(found.end)) == (1, "text It is wet. | thinking Yes.")
    assert shown(side.end) == "text Aside."
