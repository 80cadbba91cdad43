"""The tool `read_back` in contexts: from the first step on, the same bytes, never the agent's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction import tokens
from compaction.tools import read_tool
from compaction.tools.read_tool import definition
from sessions.models import Message, Session, Team
from sessions.models.tools.tooling import sizes
from tests.sessions.live.test_steps import STEPS, USAGE, said, turn
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

TOOLS = [{"description": "Read.", "input_schema": {"type": "object"}, "name": "read"}]
TOKENS = sizes({"tools": [definition("anthropic")]})["read_back"]


@pytest.fixture(autouse=True)
def every_setup_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_tool, "LARGE_SETUP", 0)


def names(context: dict[str, Any]) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in context.get("tools") or []]


@pytest.mark.parametrize("tools", [None, TOOLS])
def test_it_is_last_from_the_first_step_on_and_never_stored(
    program: Program, tools: list[dict[str, Any]] | None
):
    own = [] if tools is None else ["read"]
    first = program.post(STEPS, {"messages": [said("Go.")], "tools": tools})
    assert names(first) == [*own, "read_back"]
    talk = [said("Go."), *turn(1)]
    back = {"messages": talk, "history": True, "tools": first["tools"]}
    second = program.post(STEPS, {**back, "usage": USAGE, "context_id": first["context_id"]})
    assert json.dumps(second["tools"]) == json.dumps(first["tools"])
    third = program.post(STEPS, {"messages": turn(2), "since": second["context_id"]})
    assert third["tools"] is None, "nothing changed"
    setups = Message.objects.filter(role="system")
    assert setups.count() == len(own)
    assert "read_back" not in json.dumps(program.get("/sessions/run/messages"))
    again = program.get(f"/sessions/run/context?context_id={first['context_id']}")
    assert [again[name] for name in ("tools", "tokens")] == [
        first[name] for name in ("tools", "tokens")
    ]


def test_a_rewind_does_not_add_it(program: Program, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(read_tool, "LARGE_SETUP", 1_000_000)
    program.post(STEPS, {"messages": [said("Go."), *turn(1)], "tools": TOOLS})
    other = [said("Go."), *turn(2)]
    again = program.post(STEPS, {"messages": other, "history": True})
    assert (again["revision"], names(again)) == (1, ["read"])


def test_a_list_that_was_sent_back_is_not_counted_again(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    first = program.post(STEPS, {"messages": [said("Go.")], "tools": TOOLS})
    texts: list[str] = []

    def counted(text: str) -> tokens.Counted:
        texts.append(text)
        return tokens.Counted(1, estimated=False)

    monkeypatch.setattr(tokens, "counted", counted)
    program.post(STEPS, {"messages": [said("On.")], "tools": first["tools"]})
    assert texts == ["On."]


def test_the_first_list_of_an_imported_session_may_contain_it(program: Program):
    """It has no policy before its first append."""
    Session.objects.create(team=Team.objects.get(), external_id="run", source="claude-code")
    listed = {"messages": [said("Go.")], "tools": [*TOOLS, definition("anthropic")]}
    program.post("/sessions/run/messages", listed)
    assert names(program.get("/sessions/run/context")) == ["read", "read_back"]
    assert "read_back" not in json.dumps(program.get("/sessions/run/messages"))


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["read_back"]), ("?format=openai", ["read_back"]), ("?at=1", ["read_back"]),
        ("?read_back=false", []), ("?format=pairs", []), ("?format=blocks", []),
    ],
)  # fmt: skip
def test_which_contexts_list_it(program: Program, query: str, found: list[str]):
    program.post("/sessions/run/messages", {"messages": [said("Go.")]})
    assert names(program.get(f"/sessions/run/context{query}")) == found


def test_a_step_can_leave_it_out(program: Program):
    step = {"messages": [said("Go.")], "tools": TOOLS, "read_back": False}
    assert names(program.post(STEPS, step)) == ["read"]


def test_a_policy_without_edits_leaves_the_list_to_the_agent(program: Program):
    program.ask("PUT", "/sessions/run", {"policy": "passthrough"})
    first = program.post(STEPS, {"messages": [said("Go.")], "tools": TOOLS})
    assert names(first) == ["read"]
    mine = {"messages": turn(1), "tools": [*TOOLS, definition("anthropic")]}
    assert names(program.post(STEPS, mine)) == ["read", "read_back"]
    assert "read_back" in json.dumps(program.get("/sessions/run/messages"))


def test_its_tokens_count_until_they_were_measured(program: Program):
    first = program.post(STEPS, {"messages": [said("Go.")]})
    without = program.get("/sessions/run/context?read_back=false")
    assert first["tokens"] - without["tokens"] == Session.objects.get().scaled(TOKENS)
    step = {"messages": turn(1), "usage": USAGE, "context_id": first["context_id"]}
    second = program.post(STEPS, step)
    without = program.get("/sessions/run/context?read_back=false")
    assert second["tokens"] == without["tokens"] > USAGE["input_tokens"]


def test_with_a_small_setup_it_joins_at_the_first_revision(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_tool, "LARGE_SETUP", 6_000)
    program.ask("PUT", "/sessions/run", {"policy": "offload-first"})
    listed = [
        (context["revision"], names(context))
        for number in range(1, 9)
        for context in [program.post(STEPS, {"messages": long_turn(number), "tools": TOOLS})]
    ]
    first = next(place for place, (revision, _) in enumerate(listed) if revision)
    assert first > 0
    for place, (_, found) in enumerate(listed):
        assert found == (["read", "read_back"] if place >= first else ["read"])


def test_a_model_that_binds_thinking_has_it_from_the_first_step(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_tool, "LARGE_SETUP", 6_000)
    found = {}
    for model in ("claude-fable-5-2", "claude-sonnet-4-5"):
        program.ask("PUT", f"/sessions/{model}", {"policy": "offload-first", "model": model})
        first = program.post(f"/sessions/{model}/steps", {"messages": [said("Go.")]})
        found[model] = names(first)
    assert found == {"claude-fable-5-2": ["read_back"], "claude-sonnet-4-5": []}


def long_turn(number: int) -> list[dict[str, Any]]:
    """A call of a tool with a long result."""
    call, result = turn(number)
    result["content"][0]["content"] = f"{number}: kelp\n" * 4_000
    return [call, result] if number > 1 else [said("Go."), call, result]


def test_messages_around_calls_of_a_tool(program: Program):
    def use(id: str, name: str) -> dict[str, Any]:
        part = {"type": "tool_use", "id": id, "name": name, "input": {}}
        return {"role": "assistant", "content": [part]}

    def result(id: str) -> dict[str, Any]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id}]}

    sent = [
        *(said("Go."), use("a1", "read"), result("a1")),
        {"role": "system", "content": "No task was set."},
        *(use("b1", "read_back"), result("b1"), use("b2", "read_back"), result("b2")),
        *(use("a2", "read"), result("a2"), use("b3", "read_back")),
    ]
    program.post("/sessions/run/messages", {"messages": sent})
    address, found, after = "/sessions/run/messages?tool=read_back&limit=3", [], 0
    while after is not None:
        page = program.get(f"{address}&after={after}")
        found, after = [*found, *(one["seq"] for one in page["messages"])], page["next"]
    assert found == [3, 5, 6, 7, 8, 9, 10, 11], "not the first two, nor the system message"
    assert program.get("/sessions/run/messages?tool=none") == {"messages": [], "next": None}
