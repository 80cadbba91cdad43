"""Logs of Amp, Cursor, Goose and Kimi, read by both readers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions.importers import parse
from tests.sessions.second_reader.reading import both, contexts, lines

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({"status": "done", "result": {"diff": "+ keel"}}, "+ keel"),
        ({"status": "done", "result": "keel.txt"}, "keel.txt"),
        ({"status": "done", "result": {"matches": 2}}, '{"matches": 2}'),
        ({"status": "error", "error": {"message": "no keel"}}, "no keel"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "in-progress"}, ""),
    ],
    ids=["edit", "text", "other", "error", "cancelled", "without a result"],
)
def test_a_result_of_amp(run: dict[str, Any], expected: str) -> None:
    usage = {"model": "gpt-5", "inputTokens": 2, "cacheCreationInputTokens": 7, "outputTokens": 1}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"cmd": "ls"}, "complete": True}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "Lay the keel."}]},
        {"role": "assistant", "content": [call], "usage": usage},
        {"role": "user", "content": [{"type": "tool_result", "toolUseID": "t", "run": run}]},
    ]
    [found] = both("amp", json.dumps({"id": "T-1", "messages": messages}).encode())
    assert found.steps[0].billed == (9, 0, 0, 1, 0)
    asked = 'text Lay the keel. | tool_use Bash {"cmd": "ls"}'
    assert contexts(found)[1] == f"{asked} | tool_result {expected}"


def test_cursor() -> None:
    def said(role: str, *content: dict[str, Any]) -> dict[str, Any]:
        return {"role": role, "message": {"content": [*content]}}

    used = {"type": "tool_use", "name": "Read", "input": {"path": "log"}}
    result = {"type": "tool_result", "content": "calm"}
    [found] = both(
        "cursor",
        lines(
            said("user", {"type": "text", "text": "Weather?"}),
            said("assistant", used),
            said("assistant", result),
            said("assistant", {"type": "text", "text": "Calm."}),
        ),
    )
    looked = 'text Weather? | tool_use Read {"path": "log"} | tool_result calm'
    assert contexts(found) == ["text Weather?", looked, f"{looked} | text Calm."]


def goose(role: str, *content: dict[str, Any], agent: bool = True, user: bool = True) -> Any:
    seen = {"agentVisible": agent, "userVisible": user}
    return {"role": role, "created": 1767225600, "content": [*content], "metadata": seen}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def test_goose_sends_no_text_that_is_for_people() -> None:
    shown = {"annotations": {"audience": ["user"]}}
    sent = {"annotations": {"audience": ["assistant"]}}
    file = {"type": "resource", "resource": {"uri": "file:///a", "text": "oak"}}
    results = [text("planks", **sent), text("planks, in color", **shown), file]
    call = {"status": "success", "value": {"name": "ls", "arguments": {}}}
    response = {"status": "success", "value": {"content": results, "isError": False}}
    session = [
        {"working_dir": "/boats", "description": "Planks"},
        goose("user", text("Which wood?")),
        goose(
            "assistant",
            {"type": "reasoning", "text": "Hm."},
            {"type": "frontendToolRequest", "id": "g", "toolCall": call},
        ),
        goose("user", {"type": "toolResponse", "id": "g", "toolResult": response}),
        goose("assistant", text("Oak."), {"type": "conversationCompacted", "msg": "x"}),
    ]
    [found] = both("goose", lines(*session))
    assert contexts(found)[-1] == (
        "text Which wood? | thinking Hm. | tool_use ls {} | tool_result planks oak | text Oak."
    )


def test_what_goose_hid_at_a_compaction_was_sent_before_it() -> None:
    hidden = {"agent": False}
    conversation = [
        goose("user", text("Paint."), **hidden),
        goose("assistant", text("Blue?"), **hidden),
        goose("user", text("So far: paint."), agent=False, user=False),
        goose("assistant", text("I go on."), agent=False, user=False),
        goose("user", text("Blue."), **hidden),
        goose("assistant", text("Done."), **hidden),
        goose("user", text("So far: blue."), user=False),
        goose("user", text("/status"), **hidden),
        goose("assistant", text("Dry.")),
    ]
    whole = {"id": "g", "working_dir": "/boats", "conversation": conversation}
    [found] = both("goose", json.dumps(whole).encode())
    assert (found.compactions, contexts(found)) == (
        2,
        [
            "text Paint.",
            "text So far: paint. | text I go on. | text Blue.",
            "text So far: blue.",
            "text So far: blue. | text Dry.",
        ],
    )


def wrapped(form: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": 1767225600.5, "message": {"type": form, "payload": payload}}


def test_a_result_of_kimi_begins_with_its_message() -> None:
    def result(**value: Any) -> dict[str, Any]:
        return wrapped("ToolResult", tool_call_id="k", return_value=value)

    tokens = {"input_other": 1, "input_cache_read": 20, "output": 3}
    function = {"name": "Shell", "arguments": '{"command": "ls"}'}
    [found] = both(
        "kimi",
        lines(
            {"type": "metadata", "protocol_version": "1.1"},
            wrapped("TurnBegin", user_input="Hoist."),
            wrapped("StepBegin", n=1),
            wrapped("ContentPart", type="think", think="Hm."),
            wrapped("ToolCall", type="function", id="k", function=function),
            wrapped("StatusUpdate", token_usage=tokens),
            result(is_error=True, output="", message="No rope."),
            result(is_error=False, output=[text("rope")], message="Found."),
            wrapped("StepBegin", n=2),
            wrapped("ContentPart", type="text", text="Hoisted."),
        ),
    )
    asked = 'text Hoist. | thinking Hm. | tool_use Shell {"command": "ls"}'
    results = (
        "tool_result <system>ERROR: No rope.</system> | tool_result <system>Found.</system> rope"
    )
    assert contexts(found) == [
        "text Hoist.",
        f"{asked} | {results}",
        f"{asked} | {results} | text Hoisted.",
    ]
    assert [one.billed for one in found.steps] == [(1, 20, 0, 3, 0), None]


def message(role: str, words: str, origin: str = "user", **more: Any) -> dict[str, Any]:
    said = {"role": role, "content": [text(words)], "origin": {"kind": origin}, **more}
    return {"type": "context.append_message", "message": said}


def event(form: str, **more: Any) -> dict[str, Any]:
    return {"type": "context.append_loop_event", "event": {"type": form, **more}}


def part(words: str) -> dict[str, Any]:
    return event("content.part", part=text(words))


TURNS = [
    message("user", "One."),
    event("step.begin"),
    part("I "),
    part("look."),
    event("tool.call", toolCallId="k", name="Look", args={}),
    event("tool.result", toolCallId="k", result={"output": "wet"}),
    message("assistant", "I look.", toolCalls=[{"id": "k", "name": "Look", "arguments": "{}"}]),
    message("tool", "wet", toolCallId="k"),
    message("user", "A hook ran.", "injection"),
    message("user", "Two."),
    event("step.begin"),
    part("Dry."),
]
LOOKED = "text One. | text I | text look. | tool_use Look {} | tool_result wet"
HOOKED = f"{LOOKED} | text A hook ran."


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        # A response is one message of the history, in however many parts it came.
        ({"type": "context.apply_compaction", "summary": "So far.", "compactedCount": 2},
         "tool_result wet | text A hook ran. | text Two. | text Dry. | text So far."),
        ({"type": "context.apply_compaction", "summary": "So far.", "contextSummary": "Wet.",
          "compactedCount": 6, "keptUserMessageCount": 1}, "text Two. | text Wet."),
        ({"type": "context.apply_compaction", "summary": {"content": [text("So far.")]},
          "keptUserMessageCount": 2, "keptHeadUserMessageCount": 1},
         "text One. | text Two. | text So far."),
        ({"type": "context.clear"}, ""),
        ({"type": "context.undo", "count": 1}, HOOKED),
        ({"type": "context.undo", "count": 2}, "text A hook ran."),
    ],
    ids=["counted", "prompts kept", "first and last kept", "cleared", "undone", "both undone"],
)  # fmt: skip
def test_kimi_changes_its_history(change: dict[str, Any], expected: str) -> None:
    [found] = both("kimi", lines(*TURNS, change, message("user", "Three."), part("Yes.")))
    after = f"{expected} | text Three.".removeprefix(" | ")
    assert contexts(found) == ["text One.", f"{HOOKED} | text Two.", after, f"{after} | text Yes."]


def test_kimi_takes_back_no_summary() -> None:
    compacted = {"type": "context.apply_compaction", "summary": "So far."}
    undone = {"type": "context.undo", "count": 5}
    [found] = both("kimi", lines(*TURNS, compacted, message("user", "Three."), undone))
    assert contexts(found)[-1] == "text So far."


def test_a_session_of_goose_that_is_compacted_goes_on() -> None:
    """An export after a compaction has the earlier messages hidden; they are the same records."""
    more = [goose("user", text("So far: paint."), user=False), goose("assistant", text("Done."))]
    seen, hidden = (
        parse(
            lines(
                {"working_dir": "/boats", "description": "Paint"},
                goose("user", text("Paint."), agent=agent),
                goose("assistant", text("Blue?"), agent=agent),
                *rest,
            )
        ).sessions[0]
        for agent, rest in ((True, []), (False, more))
    )
    assert hidden.records[: len(seen.records)] == seen.records
