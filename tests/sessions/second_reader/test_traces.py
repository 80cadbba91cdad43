"""What the second readers find in messages and spans of traces."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf.json_format import MessageToJson, ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from sessions.second_reader import trace_messages
from tests.sessions.second_reader.reading import SAMPLES, both, read, shown

CALL = {"id": "c", "function": {"name": "look", "arguments": '{"at": "sea"}'}}
PART = {"id": "c", "name": "look", "args": {"at": "sea"}}
LOOK = 'tool_use look {"at": "sea"}'


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Look.", "user: text Look."),
        ({"messages": [{"role": "human", "content": "Look."}]}, "user: text Look."),
        ({"role": "assistant", "content": "", "tool_calls": [CALL]}, f"assistant: {LOOK}"),
        ({"role": "ai", "content": "", "additional_kwargs": {"tool_calls": [CALL]}},
         f"assistant: {LOOK}"),
        ({"role": "model", "parts": [{"function_call": PART}]}, f"assistant: {LOOK}"),
        ({"type": "function_call", **PART}, f"assistant: {LOOK}"),
        ({"role": "assistant", "content": [{"type": "tool-call", "toolName": "look",
                                            "input": {"at": "sea"}}]}, f"assistant: {LOOK}"),
        ({"message": {"role": "assistant", "tool_calls": [{"tool_call": CALL}]}},
         f"assistant: {LOOK}"),
        ({"id": ["langchain", "AIMessage"], "kwargs": {"content": "Wet."}}, "assistant: text Wet."),
        ({"role": "user", "parts": [{"function_response": {"response": {"output": "wet"}}}]},
         "tool: tool_result wet"),
        ({"role": "tool", "parts": [{"type": "tool_call_response", "response": "wet"}]},
         "tool: tool_result wet"),
        ({"role": "tool", "content": [
            {"type": "tool-result", "output": {"type": "text", "value": "wet"}}
        ]}, "tool: tool_result wet"),
        ({"type": "function_call_output", "output": "wet"}, "tool: tool_result wet"),
        ({"role": "look", "content": "wet"}, "tool: tool_result wet"),
        ({"config": {"system_instruction": "Sail."}, "contents": "Look."},
         "system: text Sail. / user: text Look."),
        ([{"type": "reasoning", "content": "Hm."}, {"role": "assistant", "content": "Wet."}],
         "assistant: text Hm. | text Wet."),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, "Wet."]},
         "assistant: thinking Hm. | text Wet."),
    ],
    ids=["text", "around", "chat completions", "LangChain", "Gemini", "Responses", "AI SDK",
         "OpenInference", "LangChain's constructor", "Gemini's result", "GenAI's result",
         "AI SDK's result", "Responses' result", "named by the tool", "instructions", "joined",
         "thinking"],
)  # fmt: skip
def test_a_message_of_a_trace(given: Any, expected: str) -> None:
    for value in (given, json.dumps(given)) if not isinstance(given, str) else (given,):
        said = trace_messages.prompt([None, value])
        assert " / ".join(f"{one.role}: {shown(one.pieces(1))}" for one in said) == expected


def _span(at: int, **attributes: Any) -> dict[str, Any]:
    values = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
    start = str(at * 10**9)
    return {"traceId": "t", "startTimeUnixNano": start, "attributes": values}


def test_tools_of_a_trace_count_where_no_model_does() -> None:
    def of_tool(at: int, group: str, result: str) -> dict[str, Any]:
        return _span(
            at,
            **{
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.conversation.id": group,
                "gen_ai.tool.name": "look",
                "gen_ai.tool.call.arguments": '{"at": "sea"}',
                "gen_ai.tool.call.result": result,
            },
        )

    asked = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": "b"}
    said = {"gen_ai.input.messages": '[{"role": "user", "content": "Look."}]'}
    spans = [of_tool(3, "a", "dry"), of_tool(1, "a", "wet"), of_tool(1, "b", "wet")]
    spans.append(_span(2, **asked, **said))
    export = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    by_tools, by_model = read("otlp-traces", json.dumps(export).encode())
    assert [shown(one.context) for one in by_tools.steps] == ["", f"{LOOK} | tool_result wet"]
    assert shown(by_tools.end[2:]) == f"{LOOK} | tool_result dry"
    assert [shown(one.context) for one in by_model.steps] == ["text Look."]


@pytest.mark.django_db
def test_a_request_in_protobuf_is_as_in_json() -> None:
    """JSON has protobuf's own field names, too, if an exporter keeps them."""
    export = json.loads((SAMPLES / "otlp-traces" / "genai.json").read_text())
    in_json = read("otlp-traces", json.dumps(export).encode())
    for span in export["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    request = ParseDict(export, ExportTraceServiceRequest())
    assert read("otlp-traces", request.SerializeToString()) == in_json
    in_snake_case = MessageToJson(request, preserving_proto_field_name=True).encode()
    assert b"start_time_unix_nano" in in_snake_case
    assert both("otlp-traces", in_snake_case) == in_json


@pytest.mark.django_db
def test_calls_without_content_are_told_apart_by_the_span_around_them() -> None:
    used = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "9"}
    around = {1: "main", 2: "sub", 3: "main", 4: "sub", 5: "main"}
    spans = [
        {**_span(at, **used), "spanId": f"s{at}", "parentSpanId": span}
        for at, span in around.items()
    ]
    export = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    found = both("otlp-traces", json.dumps(export).encode())
    assert [len(one.steps) for one in found] == [3, 2]
