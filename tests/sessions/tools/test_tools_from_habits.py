"""A session starts with the tools that its agent's newest sessions used, if its policy says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compaction.tools import read_tool
from sessions.actions.assessments.assess import assess_session
from sessions.models import Session, ToolGraph
from sessions.models.tools.unused import ENOUGH
from tests.provider_binding import MODELS, Bindings
from tests.sessions.pages import page_of, signed_in
from tests.sessions.programs import Program
from tests.sessions.tools.test_definitions import begin, defined, use

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

NAMES = ("draw", "edit", "look", "plot")
TOOLS = [defined(name) for name in NAMES]
HABITS: dict[str, Any] = {"agent": "scout", "policy_overrides": {"tools": "habits"}}


@pytest.fixture(autouse=True)
def every_setup_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_tool, "LARGE_SETUP", 0)


@pytest.fixture
def known(program: Program) -> Program:
    """A team whose agent scout looks, then edits, in as many sessions as are needed."""
    for number in range(ENOUGH):
        name = f"old-{number}"
        begin(program, TOOLS, name, agent="scout")
        for step, tool in enumerate(("look", "edit"), start=1):
            use(program, tool, name, cache_creation_input_tokens=1_000 * step)
        assess_session(Session.objects.get(external_id=name))
    return program


def offered(program: Program, query: str = "") -> list[str]:
    return [tool["name"] for tool in program.get(f"/sessions/run/context{query}")["tools"]]


def test_unused_tools_are_left_out_and_the_answer_says_why(known: Program) -> None:
    begin(known, TOOLS, **HABITS)
    context = known.get("/sessions/run/context")
    assert [tool["name"] for tool in context["tools"]] == ["edit", "look", "read_back"]
    toolset = context["toolset"]
    why = f"none of the agent's newest {ENOUGH} sessions used it"
    assert toolset["left_out"] == [{"tool": one, "reason": why} for one in ("draw", "plot")]
    assert toolset["left_out_tokens"] > 0
    assert {one["tool"] for one in toolset["next"]} == {"edit", "look"}
    use(known, "look", cache_creation_input_tokens=1_000)
    assert known.get("/sessions/run/context")["toolset"]["next"][0]["tool"] == "edit"
    session = Session.objects.get(external_id="run")
    page = page_of(signed_in(known.team), f"/sessions/{session.pk}/tools/")
    assert f"left 2 tools out: none of the agent's newest {ENOUGH} sessions used them" in page.text


def test_the_list_stays_and_a_used_tool_joins_at_its_end(known: Program) -> None:
    begin(known, TOOLS, **HABITS)
    first = known.get("/sessions/run/context")
    for step, tool in enumerate(("look", "edit", "look"), start=1):
        use(known, tool, cache_creation_input_tokens=1_000 * step)
        assert offered(known) == ["edit", "look", "read_back"]
    begin(known, [*TOOLS, defined("new")], **HABITS)
    assert offered(known) == ["edit", "look", "new", "read_back"], "nothing is known of it"
    use(known, "plot", cache_creation_input_tokens=9_000)
    assert offered(known) == ["edit", "look", "new", "plot", "read_back"]
    assert ToolGraph.objects.filter(session__external_id="run").count() == 1
    again = known.get(f"/sessions/run/context?context_id={first['context_id']}")
    for name in ("tools", "messages", "tokens"):
        assert again[name] == first[name]
    assert again["toolset"]["next"] == [], "no part of the prompt, so not kept"


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-sonnet-4-5"])
def test_a_tool_that_joins_takes_thinking_along_that_it_makes_invalid(
    known: Program, model: str
) -> None:
    begin(known, TOOLS, **{**HABITS, "model": model})
    provider, harmed = Bindings(), list[bool]()
    for step, tool in enumerate(("look", "edit", "plot", "look", "edit")):
        context = known.get("/sessions/run/context")
        body = {name: context[name] for name in ("system", "tools", "messages")}
        harmed.append(bool(provider.invalid({**body, "model": MODELS[0]})))
        thought = {"type": "thinking", "thinking": "so", "signature": f"s{step}"}
        call = {"type": "tool_use", "id": f"t{step}", "name": tool, "input": {}}
        provider.note(body, [thought, call])
        answer = {"type": "tool_result", "tool_use_id": f"t{step}", "content": "ok"}
        said = [{"role": "assistant", "content": [thought, call]}]
        said += [{"role": "user", "content": [answer]}]
        known.post("/sessions/run/messages", {"messages": said})
    messages = known.get("/sessions/run/context")["messages"]
    blocks = [block for message in messages for block in message["content"]]
    stays = [block["signature"] for block in blocks if block["type"] == "thinking"]
    assert (any(harmed), stays) == (
        (False, ["s3", "s4"]) if model == MODELS[2] else (True, ["s0", "s1", "s2", "s3", "s4"])
    )


def test_what_the_session_has_used_is_offered_from_the_start(known: Program) -> None:
    known.ask("PUT", "/sessions/run", {"model": "claude-sonnet-4-5", **HABITS})
    call = {"type": "tool_use", "id": "t1", "name": "plot", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    messages = [
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [answer]},
    ]
    known.post("/sessions/run/messages", {"tools": TOOLS, "messages": messages})
    assert offered(known) == ["edit", "look", "plot", "read_back"]


@pytest.mark.parametrize(
    "fields",
    [
        {"agent": "scout"},
        {**HABITS, "agent": "stranger"},
        {**HABITS, "agent": ""},
    ],
)
def test_otherwise_every_tool_is_offered(known: Program, fields: dict[str, Any]) -> None:
    begin(known, TOOLS, **fields)
    assert offered(known) == [*NAMES, "read_back"]
    assert known.get("/sessions/run/context")["toolset"] is None


def test_sessions_without_a_name_are_no_agent(known: Program) -> None:
    Session.objects.update(agent="")
    begin(known, TOOLS, **{**HABITS, "agent": ""})
    assert offered(known) == [*NAMES, "read_back"]


def test_too_few_sessions_are_no_habit_and_more_come_too_late(known: Program) -> None:
    Session.objects.filter(external_id="old-0").update(agent="other")
    begin(known, TOOLS, **HABITS)
    assert offered(known) == [*NAMES, "read_back"]
    use(known, "look", cache_creation_input_tokens=1_000)
    Session.objects.filter(external_id="old-0").update(agent="scout")
    begin(known, [*TOOLS, defined("new")], **HABITS)
    assert offered(known) == [*NAMES, "new", "read_back"]


def test_it_is_decided_once_although_tools_come_again_before_the_first_call(known: Program):
    begin(known, TOOLS, **HABITS)
    begin(known, [*TOOLS, defined("new")], **HABITS)
    assert offered(known) == ["edit", "look", "new", "read_back"]


def test_tools_that_contexts_refer_to_stay(known: Program) -> None:
    begin(known, [*TOOLS, defined("search_memory")], **HABITS)
    assert offered(known) == ["edit", "look", "search_memory", "read_back"]


def test_what_is_not_sent_is_not_unused(known: Program) -> None:
    begin(known, TOOLS, **HABITS)
    for step, tool in enumerate(("look", "edit"), start=1):
        use(known, tool, cache_creation_input_tokens=1_000 * step)
    found = known.get("/sessions/run/tools")["definitions"]
    assert found["unused_tokens"] == found["unused_microusd"] == 0
    assert {row["tool"]: row["calls"] for row in found["tools"]} == {
        "draw": 0,
        "edit": 2,
        "look": 2,
        "plot": 0,
    }


def test_no_list_becomes_empty(known: Program) -> None:
    begin(known, [defined("draw"), defined("plot")], **HABITS)
    assert offered(known) == ["draw", "plot", "read_back"]


@pytest.mark.parametrize(
    ("graph", "names"),
    [
        ({"tools": ["draw"]}, ["draw", "edit", "look"]),
        ({"tools": ["look", {"name": "draw", "needs": ["look"]}]}, ["edit", "look"]),
        ({"tools": [], "sends": "all"}, list(NAMES)),
    ],
)
def test_tools_that_a_graph_names_follow_the_graph(
    known: Program, graph: dict[str, Any], names: list[str]
) -> None:
    known.ask("PUT", "/sessions/run", {"model": "claude-sonnet-4-5", **HABITS})
    assert known.ask("PUT", "/sessions/run/tools", graph).status_code == 200
    begin(known, TOOLS, **HABITS)
    assert offered(known) == [*names, "read_back"]
    assert known.get("/sessions/run/context")["toolset"]["allowed"] == names
    use(known, "look", cache_creation_input_tokens=1_000)
    assert set(offered(known)) == {*names, "draw", "read_back"}, "by its need, or from the start"


def test_an_agent_gets_the_others_by_a_graph(known: Program) -> None:
    begin(known, TOOLS, **HABITS)
    assert known.ask("PUT", "/sessions/run/tools", {"tools": ["plot"]}).status_code == 200
    assert offered(known) == [*NAMES, "read_back"]


def test_a_namespace_stays_if_one_of_its_tools_was_used(known: Program) -> None:
    nested = [defined("edit"), defined("merge")]
    hub = {"type": "namespace", "name": "hub", "description": "a hub", "tools": nested}
    begin(known, [hub, defined("draw"), defined("look")], **HABITS)
    assert known.get("/sessions/run/context")["toolset"]["listed"] == ["hub", "look"]


def test_habits_are_read_once_in_a_session(known: Program) -> None:
    begin(known, TOOLS, **HABITS)
    body = {"tools": TOOLS, "messages": [{"role": "user", "content": "and b.py"}]}
    use(known, "look", cache_creation_input_tokens=1_000)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        known.post("/sessions/run/messages", body)
        known.get("/sessions/run/context")
    assert not [one for one in asked.captured_queries if "assessment" in one["sql"]]
