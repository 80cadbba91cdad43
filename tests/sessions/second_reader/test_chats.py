"""Chats in lines, streams of Claude Code, and logs of OpenHands, read by both readers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sessions.second_reader.reading import both, contexts, lines, shown

pytestmark = pytest.mark.django_db


def test_conversations_precede_what_the_lines_say() -> None:
    call = {"id": "c", "function": {"name": "look", "arguments": "{}"}}
    tokens = {"prompt_tokens": 9, "completion_tokens": 2}
    talk, alone = both(
        "chat-jsonl",
        lines(
            {"role": "user", "content": "Look."},
            {"messages": [{"role": "user", "content": "Reef?"}]},
            {"role": "assistant", "tool_calls": [call], "usage": tokens},
            {"role": "tool", "tool_call_id": "c", "content": "wet"},
            {"messages": [{"content": "of nobody"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, "Wet."]},
        ),
    )
    assert shown(talk.end) == "text Reef?"
    looked = "text Look. | tool_use look {} | tool_result wet"
    assert contexts(alone) == ["text Look.", looked, f"{looked} | thinking Hm. | text Wet."]
    assert alone.steps[0].billed == (9, 0, 0, 2, 0)


def stream(form: str, content: Any = None, response: str = "", **more: Any) -> dict[str, Any]:
    inner = {"role": form, "content": content, **({"id": response} if response else {})}
    named = {"model": "claude-x"} | {n: more.pop(n) for n in ("model", "usage") if n in more}
    message = {**inner, **(named if form == "assistant" else {})}
    return {"type": form, "session_id": "s", "message": message, **more}


def test_a_stream_is_compacted_and_its_client_is_no_model() -> None:
    first = {"input_tokens": 3, "output_tokens": 1}
    last = {**first, "output_tokens": 9}
    boundary = {"type": "system", "subtype": "compact_boundary", "session_id": "s"}
    [found] = both(
        "claude-stream-json",
        lines(
            stream("user", "Sail."),
            stream("assistant", [{"type": "thinking", "thinking": "Wind."}], "m1", usage=first),
            stream("assistant", [{"type": "text", "text": "Aye."}], "m1", usage=last),
            stream("assistant", "No reply.", "m2", model="<synthetic>"),
            stream("assistant", "Overloaded", "m3", model="<synthetic>", error="server_error"),
            stream("user", "Where?"),
            stream("assistant", [{"type": "text", "text": "North."}], "m4"),
            {**boundary, "compact_metadata": {"trigger": "auto", "pre_tokens": 90}},
            stream("user", "So far: north.", isSynthetic=True),
            stream("assistant", [{"type": "text", "text": "On."}], "m5"),
        ),
    )
    said = "text Sail. | thinking Wind. | text Aye. | text No reply. | text Where?"
    assert contexts(found) == [
        "text Sail.",
        said,
        "text So far: north.",
        "text So far: north. | text On.",
    ]
    assert (found.compactions, found.steps[0].billed) == (1, (3, 0, 0, 9, 0))


def happened(kind: str, named: str, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "id": named, "source": "agent", **more}


def test_events_of_openhands() -> None:
    def words(text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def action(named: str, response: str, **more: Any) -> dict[str, Any]:
        asked = {"function": {"name": "bash", "arguments": '{"command": "ls"}'}}
        called = {"tool_name": "bash", "tool_call_id": named, "tool_call": asked}
        return happened("ActionEvent", named, llm_response_id=response, **called, **more)

    said = {"role": "assistant", "content": [words("Fog.")], "reasoning_content": "So."}
    prompt = {"system_prompt": words("You look."), "dynamic_context": words("It is noon.")}
    [found] = both(
        "openhands-events",
        lines(
            happened("SystemPromptEvent", "0", tools=[], **prompt),
            happened(
                *("MessageEvent", "1"),
                source="user",
                llm_message={"role": "user", "content": [words("Look.")]},
                extended_content=[words("Skills.")],
            ),
            action("2", "r", thought=[words("Well.")], reasoning_content="Hm."),
            action("3", "r", thought=[]),
            happened("ObservationEvent", "4", observation={"error": True, "output": "wet"}),
            happened("UserRejectObservation", "5", rejection_reason="not now"),
            happened("Condensation", "6", forgotten_event_ids=["2", "4"], summary="It is wet."),
            happened("AgentErrorEvent", "7", error="no such tool"),
            happened("MessageEvent", "8", llm_message=said),
        ),
    )
    begun = "text You look. | text It is noon. | text Look. | text Skills."
    refused = 'tool_use bash {"command": "ls"} | tool_result Action rejected: not now'
    ended = f"{begun} | {refused} | text It is wet. | tool_result no such tool"
    assert contexts(found) == [begun, ended, f"{ended} | thinking So. | text Fog."]
    assert found.compactions == 1


def test_results_of_openhands() -> None:
    tokens = {"prompt_tokens": 90, "completion_tokens": 8}
    model = {"model_response": {"usage": tokens}}
    history = [
        [{"action": "message", "source": "user", "args": {"content": "Mend it."}}, {}],
        {"action": "run", "args": {"command": "ls", "thought": "Hm."}, "tool_call_metadata": model},
        {"observation": "recall", "content": "unsent"},
        {"observation": "run", "content": "mast"},
        {"observation": "error", "content": "of no call"},
        {"action": "finish", "args": {"final_thought": "Mended."}},
    ]
    [found] = both("openhands-output", lines({"instruction": "Mend it.", "history": history}))
    looked = 'text Mend it. | text Hm. | tool_use run {"command": "ls"} | tool_result mast'
    assert contexts(found) == ["text Mend it.", looked, f"{looked} | text Mended."]
    assert [one.billed for one in found.steps] == [(90, 0, 0, 8, 0), None]
