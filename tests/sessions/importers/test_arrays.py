"""Files that are one document: message arrays, requests, and the trajectories built on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compaction.context.session import Usage
from sessions.importers import counts, parse
from sessions.importers.records import Call, Message, Session

SAMPLES = Path(__file__).parent / "samples"


def load(name: str) -> Session:
    (session,) = parse((SAMPLES / name).read_bytes(), name).sessions
    return session


def session_of(value: Any, name: str = "chat.json") -> Session:
    (session,) = parse(json.dumps(value).encode(), name).sessions
    return session


def of(session: Session, kind: type[Any]) -> list[Any]:
    return [record for record in session.records if isinstance(record, kind)]


def types(message: Message) -> list[str]:
    return [block["type"] for block in message.blocks]


def test_an_anthropic_request() -> None:
    session = load("anthropic-messages/anthropic-request.json")
    messages = of(session, Message)
    assert [types(m) for m in messages] == [
        ["tools"],
        ["text"],
        ["text"],
        ["text", "tool_use"],
        ["tool_result"],
        ["text"],
    ]
    assert [m.role for m in messages] == ["system", "system", *["user", "assistant"] * 2]
    assert [m.human for m in messages] == [False, False, True, False, False, False]
    first, second = of(session, Call)
    assert (first.usage, second.usage) == (Usage(30, 0, 500, 0, 20), None)
    assert session.model == first.model == "claude-sonnet-4-5-20250929"


def test_cline_metrics_include_the_cache() -> None:
    metrics = {"inputTokens": 100, "cacheReadTokens": 60, "cacheWriteTokens": 30, "outputTokens": 5}
    use = {"type": "tool_use", "id": "t", "name": "x", "input": {}}
    answer = {"role": "assistant", "content": [use], "metrics": metrics, "modelInfo": {"id": "m"}}
    session = session_of(
        {"messages": [{"role": "user", "content": "Go."}, answer], "sessionId": "7"}
    )
    (call,) = of(session, Call)
    assert (call.usage, call.model) == (Usage(10, 60, 30, 0, 5), "m")
    assert session.external_id == "7"


def test_a_chat_completions_array() -> None:
    session = load("openai-messages/openai.json")
    messages = of(session, Message)
    assert [m.role for m in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert types(messages[1]) == ["text", "image"]
    assert [block["input"] for block in messages[2].blocks] == [
        {"at": "bow"},
        {"arguments": "not json"},
    ]
    assert messages[4].blocks[0]["tool_use_id"] == "call_2"
    assert [call.usage for call in of(session, Call)] == [
        None,
        Usage(uncached=300, cache_read=600, output=12),
    ]


def test_a_recorded_call_ends_with_its_response() -> None:
    session = load("openai-messages/openai-call.json")
    assert types(of(session, Message)[0]) == ["tools"]
    assert types(of(session, Message)[-1]) == ["tool_use"]
    (call,) = of(session, Call)
    assert (call.usage, call.model) == (
        Usage(uncached=36, cache_read=64, output=5),
        "deepseek-chat",
    )
    assert session.window == 65_536


def test_a_rewritten_response_has_the_usage_of_the_raw_one() -> None:
    call = {
        "messages": [{"role": "user", "content": "Go."}],
        "raw_response": {"choices": [{"message": {"content": "Gone."}}]},
        "response": {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    }
    [session] = parse(json.dumps(call).encode()).sessions
    [usage] = [one.usage for one in session.records if isinstance(one, Call)]
    assert usage is not None and (usage.prompt, usage.output) == (9, 2)


def test_old_functions_without_ids_are_paired_by_name() -> None:
    asked = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    answer = {"role": "function", "name": "f", "content": "1"}
    messages = of(
        session_of([{"role": "user", "content": "Go."}, asked, answer, asked, answer]), Message
    )
    uses = [messages[n].blocks[0]["id"] for n in (1, 3)]
    assert [messages[n].blocks[0]["tool_use_id"] for n in (2, 4)] == uses
    assert uses[0] != uses[1]


@pytest.mark.parametrize(
    ("usage", "expected", "reconciles"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(uncached=5, output=2), True),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 9},
            Usage(uncached=5, output=2),
            False,
        ),
        (
            {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 9}},
            Usage(cache_read=9),
            False,
        ),
        (
            {
                "prompt_tokens": 20,
                "completion_tokens": 8,
                "cache_read_input_tokens": 9,
                "cache_creation_input_tokens": 6,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Usage(5, 9, 6, 0, 8, 7),
            True,
        ),
        ({"prompt_tokens": "5"}, None, True),
    ],
)
def test_usage_that_includes_the_cache(
    usage: Any, expected: Usage | None, reconciles: bool
) -> None:
    array = [{"role": "user", "content": "Go."}, {"role": "assistant", "usage": usage}]
    (call,) = of(session_of(array), Call)
    assert (call.usage, call.reconciles) == (expected, reconciles)


def test_a_swe_agent_history() -> None:
    session = load("swe-agent-traj/swe-agent.traj")
    messages = of(session, Message)
    assert [(m.role, m.human, m.kind) for m in messages[:3]] == [
        ("system", False, "system"),
        ("user", False, "memory"),
        ("user", True, None),
    ]
    assert messages[3].blocks == [
        {"type": "text", "text": "I look around.\n```\n"},
        {"type": "tool_use", "id": "action-4", "name": "open", "input": {"command": "open a.py"}},
    ]
    results = [m.blocks[0] for m in messages if types(m) == ["tool_result"]]
    assert [r["tool_use_id"] for r in results] == ["action-4", "call_1", "call_1#8.1"]
    assert [types(m)[-1] for m in messages if m.role == "assistant"] == [*["tool_use"] * 3, "text"]
    assert session.meta["model_stats"]["api_calls"] == 4


def test_a_mini_swe_agent_trajectory() -> None:
    session = load("mini-swe-agent/mini-swe-agent.traj.json")
    assert (session.external_id, session.model) == ("harbour-8", "deepseek-chat")
    assert [(m.role, m.human) for m in of(session, Message)] == [
        ("system", False),
        ("user", True),
        ("assistant", False),
        ("tool", False),
        ("user", False),
    ]
    (call,) = of(session, Call)
    assert (call.usage, call.at) == (Usage(uncached=1240, cache_read=320, output=82), 1776067453960)


def test_an_old_mini_swe_agent_list() -> None:
    log = parse(
        (SAMPLES / "mini-swe-agent" / "mini-swe-agent-list.traj.json").read_bytes(), "x.traj.json"
    )
    (session,) = log.sessions
    assert log.format == "mini-swe-agent"
    assert [m.kind for m in of(session, Message)] == ["system", None, None, "result", None]
    assert [m.human for m in of(session, Message)] == [False, True, False, False, False]
    assert counts(log)["tool_calls"] == 0


def test_items_that_are_no_messages_are_left_out_and_reported() -> None:
    log = parse(json.dumps([{"role": "user", "content": "Go."}, 7, {"content": "x"}]).encode())
    assert len(of(log.sessions[0], Message)) == 1
    assert [item.line for item in log.skipped] == [2, 3]
    (problem,) = log.problems
    assert "2, 3." in problem


def test_files_of_one_name_are_distinguished_by_how_they_begin() -> None:
    arrays = [[{"role": "user", "content": text}] for text in ("A", "B", "A")]
    ids = [session_of(array).external_id for array in arrays]
    assert ids[0] == ids[2] != ids[1]
