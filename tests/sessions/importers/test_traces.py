"""Traces: each model call repeats its history, and the session has it once."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from sessions.importers import counts, detect, parse
from sessions.importers.records import Call, Log, Message, Rewind, Session
from sessions.importers.traces.said import TraceMessage, answer_in, said_in

SAMPLES = Path(__file__).parent / "samples"


def read(sample: str) -> Log:
    return parse((SAMPLES / sample).read_bytes(), sample)


def said(session: Session) -> list[tuple[str, str]]:
    """Role and types of each message."""
    return [
        (one.role, "+".join(block["type"] for block in one.blocks))
        for one in session.records
        if isinstance(one, Message)
    ]


def usages(session: Session) -> list[tuple[int, int, int]]:
    """Prompt, cache read and output of each call."""
    calls = [one for one in session.records if isinstance(one, Call)]
    return [
        (one.usage.prompt, one.usage.cache_read, one.usage.output) for one in calls if one.usage
    ]


def test_genai_spans_in_any_order_are_one_session() -> None:
    log = read("otlp-traces/genai.json")
    (session,) = log.sessions
    assert (session.external_id, session.agent, session.model) == (
        "orchard-1",
        "gardener",
        "gpt-5-2026-01-01",
    )
    assert said(session) == [
        ("system", "tools"),
        ("system", "text"),
        ("user", "text"),
        ("assistant", "tool_use"),
        ("tool", "tool_result"),
        ("assistant", "text"),
    ]
    assert usages(session) == [(130, 0, 12), (140, 128, 3)]
    assert sorted(item.type for item in log.skipped) == [
        "span execute_tool count_fruit",
        "span invoke_agent gardener",
    ]


def test_an_attribute_with_a_name_of_very_many_parts_is_no_message() -> None:
    sample = json.loads((SAMPLES / "otlp-traces/genai.json").read_text())
    span = sample["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    name = "llm.input_messages.0." + "a." * 5000 + "content"
    span["attributes"].append({"key": name, "value": {"stringValue": "deep"}})
    log = parse(json.dumps(sample).encode())
    assert [one.external_id for one in log.sessions] == ["orchard-1"]


def test_a_call_with_another_history_is_a_session_beside() -> None:
    first, judge = read("otlp-traces/openinference.json").sessions
    assert judge.parent == first.external_id == "0af7651916cd43dd8448eb211c80319c"
    assert said(first)[2:] == [
        ("assistant", "tool_use"),
        ("tool", "tool_result"),
        ("assistant", "text"),
    ]
    assert usages(first) == [(50, 0, 9), (70, 48, 5)]
    assert [role for role, _ in said(judge)] == ["system", "user", "assistant"]
    assert first.agent == ""


def test_generations_that_contain_others_do_not_count_twice() -> None:
    log = read("langfuse-trace/watch.json")
    assert (counts(log)["calls"], counts(log)["tool_calls"]) == (2, 1)
    assert usages(log.sessions[0]) == [(95, 0, 11), (100, 90, 10)]
    assert log.sessions[0].title == "night shift"


def test_spans_that_arrive_late_keep_the_keys_of_the_others() -> None:
    document = json.loads((SAMPLES / "otlp-traces/genai.json").read_text())
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    whole = read("otlp-traces/genai.json").sessions[0]
    document["resourceSpans"][0]["scopeSpans"][0]["spans"] = spans[:1]
    (late,) = parse(json.dumps(document).encode()).sessions
    keys = {one.key for one in whole.records if isinstance(one, Message)}
    assert {one.key for one in late.records if isinstance(one, Message)} <= keys


def test_one_request_per_line_base64_ids_and_a_broken_line() -> None:
    document = json.loads((SAMPLES / "otlp-traces/genai.json").read_text())
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    lines = []
    for span in spans:
        for name in ("traceId", "spanId", "parentSpanId"):
            span[name] = b64encode(bytes.fromhex(span[name])).decode()
        lines.append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    log = parse("\n".join([*lines[:2], "{broken", *lines[2:]]).encode())
    whole = read("otlp-traces/genai.json")
    calls = [one.call for one in log.sessions[0].records if isinstance(one, Call)]
    assert calls == ["eee19b7ec3c1b177", "eee19b7ec3c1b175"]
    assert said(log.sessions[0]) == said(whole.sessions[0])
    assert "3" in log.problems[0]


@pytest.mark.parametrize("within", [True, False])
def test_the_spans_of_an_sdk_beside_an_instrumentation_do_not_count_again(within: bool) -> None:
    document = json.loads((SAMPLES / "otlp-traces/genai.json").read_text())
    spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    again = []
    for number, span in enumerate(spans):
        given = {one["key"]: one for one in span["attributes"]}
        if given["gen_ai.operation.name"]["value"] == {"stringValue": "chat"}:
            named = {
                "key": "gen_ai.response.id",
                "value": {"stringValue": f"msg_at_sea_{number:06}"},
            }
            contents = ("messages", "instructions", "definitions")
            kept = [one for name, one in given.items() if not name.endswith(contents)]
            own = {**span, "spanId": f"{number:016x}", "attributes": [*kept, named]}
            again.append({**own, "parentSpanId": span["spanId"]} if within else own)
            span["attributes"] += [] if within else [named]
    spans[:0] = again
    assert len(again) == 2
    (session,) = parse(json.dumps(document).encode()).sessions
    assert usages(session) == [(130, 0, 12), (140, 128, 3)]
    spans[:] = again
    assert counts(parse(json.dumps(document).encode()))["calls"] == 2, "alone they count"


def test_tools_alone_are_steps_and_no_model_calls() -> None:
    document = json.loads((SAMPLES / "otlp-traces/genai.json").read_text())
    scope = document["resourceSpans"][0]["scopeSpans"][0]
    scope["spans"] = scope["spans"][1:2]
    log = parse(json.dumps(document).encode())
    assert said(log.sessions[0]) == [("assistant", "tool_use"), ("tool", "tool_result")]
    assert (counts(log)["calls"], counts(log)["tool_calls"]) == (0, 1)
    scope["spans"] = []
    assert "No span is a model call" in " ".join(parse(json.dumps(document).encode()).problems)


def test_a_history_that_changed_is_a_rewind() -> None:
    spans = json.loads((SAMPLES / "otlp-traces/openinference.json").read_text())[:2]
    spans[1]["attributes"]["llm.input_messages.2.message.content"] = "I looked."
    (session,) = parse(json.dumps(spans).encode()).sessions
    (rewind,) = [one for one in session.records if isinstance(one, Rewind)]
    assert len(rewind.drop) == 1


TEXT = {"type": "text", "text": "Hi."}
CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "sea"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "Blue."}
OPENINFERENCE_CALL = {"id": "c1", "function": {"name": "look", "arguments": '{"at": "sea"}'}}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Hi.", [TraceMessage("user", [TEXT])]),
        ([{"role": "user", "content": "Hi."}], [TraceMessage("user", [TEXT])]),
        ('{"messages": [{"role": "user", "content": "Hi."}]}', [TraceMessage("user", [TEXT])]),
        ({"type": "human", "content": "Hi."}, [TraceMessage("user", [TEXT])]),
        (
            {"lc": 1, "id": ["langchain", "AIMessage"], "kwargs": {"content": "Hi."}},
            [TraceMessage("assistant", [TEXT])],
        ),
        ({"role": "model", "parts": [{"text": "Hi."}]}, [TraceMessage("assistant", [TEXT])]),
        (
            {"contents": "Hi.", "config": {"system_instruction": "Hi."}},
            [TraceMessage("system", [TEXT]), TraceMessage("user", [TEXT])],
        ),
        (
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at":"sea"}'},
            [TraceMessage("assistant", [CALL])],
        ),
        (
            {"type": "function_call_output", "call_id": "c1", "output": "Blue."},
            [TraceMessage("tool", [RESULT])],
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Hi."},
                    {
                        "type": "tool-call",
                        "toolCallId": "c1",
                        "toolName": "look",
                        "input": {"at": "sea"},
                    },
                ],
            },
            [TraceMessage("assistant", [TEXT, CALL])],
        ),
        (
            {
                "role": "assistant",
                "contents": [
                    {"message_content": TEXT},
                    {"message_content": {"type": "tool_use"}, "tool_call": OPENINFERENCE_CALL},
                ],
                "tool_calls": [{"tool_call": OPENINFERENCE_CALL}],
            },
            [TraceMessage("assistant", [TEXT, CALL])],
        ),
        (
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "look",
                        "output": {"type": "text", "value": "Blue."},
                    }
                ],
            },
            [TraceMessage("tool", [RESULT])],
        ),
        (
            {"type": "tool", "tool_call_id": "c1", "content": "Blue."},
            [TraceMessage("tool", [RESULT])],
        ),
        ({"role": "user", "content": []}, []),
        ({"other": 1}, []),
        (None, []),
    ],
)
def test_one_reader_for_the_forms_of_all_tools(value: Any, expected: list[TraceMessage]) -> None:
    assert said_in(value) == expected
    if isinstance(value, dict | list):
        assert said_in(json.dumps(value)) == expected


def test_an_answer_is_the_assistants() -> None:
    choices = {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]}
    outputs = {"instructions": "Be kind.", "output": [{"type": "message", "content": [TEXT]}]}
    assert answer_in("Hi.") == answer_in(choices) == answer_in(outputs)
    assert answer_in("Hi.") == [TraceMessage("assistant", [TEXT])]


def test_a_file_of_spans_is_told_from_other_lists() -> None:
    assert detect(b'[{"context": {"span_id": "1"}, "attributes": {}}]') == "otlp-traces"
    assert detect(b'[{"context": {"span_id": "1"}}]') is None
