"""Thinking that the provider took out of a request is reported, kept and shown."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.record.measure import measure
from sessions.models import ModelCall, Session
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

USAGE = {"input_tokens": 10, "output_tokens": 2}
DROPPED = {
    "type": "thinking_dropped",
    "path": "messages.1.content.0",
    "reason": "prefix_binding_mismatch",
}
SEEN = DROPPED | {"type": "thinking_mismatch_allowed"}


def said(text: str = "done") -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def marks(program: Program, run: str = "recorded") -> list[tuple[int, str]]:
    measure(Session.objects.get())
    events = program.get(f"/sessions/run/manifest?run={run}")["events"]
    return [(one["step"], one["label"]) for one in events if "dropped" in one["label"]]


@pytest.fixture
def begun(program: Program) -> Program:
    program.ask("PUT", "/sessions/run", {"model": "claude-fable-5-2"})
    program.post("/sessions/run/messages", {"messages": [{"role": "user", "content": "go"}]})
    return program


def test_it_is_marked_on_the_timeline(begun: Program) -> None:
    for changes in ([], [DROPPED], [DROPPED, DROPPED, SEEN, {"type": "newer"}]):
        body = {"messages": said(), "usage": USAGE, "input_transformations": changes}
        begun.post("/sessions/run/messages", body)
    assert [call.dropped for call in ModelCall.objects.order_by("step")] == [0, 1, 2]
    assert marks(begun) == [
        (2, "1 thinking block dropped by the provider: something before changed"),
        (3, "2 thinking blocks dropped by the provider: something before changed"),
    ]


def test_it_is_marked_on_the_run_whose_context_it_was(begun: Program) -> None:
    for changes in ([], [DROPPED]):
        context = begun.get("/sessions/run/context")["context_id"]
        body = {"messages": said(), "usage": USAGE, "context_id": context}
        begun.post("/sessions/run/messages", body | {"input_transformations": changes})
    assert marks(begun) == []
    assert [step for step, _ in marks(begun, "managed")] == [2]


def test_a_late_report_says_it_too(begun: Program) -> None:
    begun.post("/sessions/run/messages", {"messages": said()})
    begun.post("/sessions/run/calls", {"usage": USAGE, "input_transformations": [DROPPED]})
    assert ModelCall.objects.get().dropped == 1
    begun.post("/sessions/run/calls", {"usage": USAGE})
    assert ModelCall.objects.get().dropped == 1, "a report without it takes nothing back"
    assert len(marks(begun)) == 1


def test_without_a_report_it_is_unknown(begun: Program) -> None:
    begun.post("/sessions/run/messages", {"messages": said(), "usage": USAGE})
    assert ModelCall.objects.get().dropped is None
    assert marks(begun) == []


@pytest.mark.parametrize("given", ["all", {"type": "thinking_dropped"}, [1], 3])
def test_what_is_no_list_of_changes_is_refused(begun: Program, given: Any) -> None:
    body = {"messages": said(), "usage": USAGE, "input_transformations": given}
    answer = begun.ask("POST", "/sessions/run/messages", body)
    assert answer.status_code == 422
    assert "input_transformations" in answer.content.decode()


TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
MORE = [*TOOLS, {"name": "ask", "input_schema": {"type": "object"}}]


def answered(number: int) -> list[dict[str, Any]]:
    """An answer that calls a tool, with thinking, and the result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": "look", "input": {}}
    thought = {"type": "thinking", "thinking": f"thought {number}", "signature": "s"}
    return [
        {"role": "assistant", "content": [thought, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}"}]},
    ]


def thinking(context: dict[str, Any]) -> list[str]:
    blocks = [block for one in context["messages"] for block in one["content"]]
    return [one["thinking"] for one in blocks if one["type"] == "thinking"]


@pytest.mark.parametrize("first", [TOOLS, None])
def test_an_answer_made_before_the_tools_changed_keeps_no_thinking(
    program: Program, first: list[Any] | None
) -> None:
    program.ask("PUT", "/sessions/run", {"model": "claude-fable-5-2", "policy": "balanced"})
    body: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}]}
    context = program.post("/sessions/run/steps", body | ({"tools": first} if first else {}))
    for number, tools in enumerate([first, MORE, MORE, TOOLS, [], None], start=1):
        body = {"messages": answered(number), "context_id": context["context_id"]}
        context = program.post(
            "/sessions/run/steps", body | ({} if tools is None else {"tools": tools})
        )
        kept = thinking(context)
        assert (f"thought {number}" in kept) == (number in (1, 3, 6)), (number, kept)


def test_thinking_made_with_the_changed_tools_stays(program: Program) -> None:
    program.ask("PUT", "/sessions/run", {"model": "claude-fable-5-2", "policy": "balanced"})
    go = {"messages": [{"role": "user", "content": "go"}], "tools": TOOLS}
    program.post("/sessions/run/steps", go)
    context = program.post("/sessions/run/steps", {"tools": MORE})
    body = {"messages": answered(1), "context_id": context["context_id"], "tools": MORE}
    assert thinking(program.post("/sessions/run/steps", body)) == ["thought 1"]
