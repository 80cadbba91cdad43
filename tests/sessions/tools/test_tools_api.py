"""Tools of a session over the API: enabled by use, masked, and a failed step done again."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.tools import read_tool
from sessions.actions.record.measure import measure
from sessions.models import AuditEntry, ManagedContext, Retry, ToolGraph
from sessions.models.tools.tooling import tooling, tooling_at
from tests.sessions.pages import other_team
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

TOOLS = [
    {"name": name, "description": f"does {name} " * 20, "input_schema": {"type": "object"}}
    for name in ("edit", "undo_edit", "browser_open", "browser_click", "free")
]
GRAPH = {
    "tools": [
        "edit",
        {"name": "undo_edit", "needs": ["edit"]},
        "browser_open",
        {"name": "browser_click", "needs": ["browser_*"]},
    ]
}
STATES = {
    "sends": "all",
    "states": {"idle": ["edit", "undo_edit", "browser_open"], "browsing": ["browser_*"]},
    "after": {"browser_*": "browsing", "edit": "idle"},
    "initial": "idle",
}


@pytest.fixture(autouse=True)
def every_setup_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_tool, "LARGE_SETUP", 0)


@pytest.fixture
def one(program: Program) -> Program:
    program.ask("PUT", "/sessions/run", {"model": "claude-sonnet-4-5"})
    body = {"tools": TOOLS, "messages": [{"role": "user", "content": "mend src/a.py"}]}
    program.post("/sessions/run/messages", body)
    return program


def use(one: Program, tool: str, call: str, *, failed: str = "", **more: Any) -> None:
    block = {"type": "tool_use", "id": call, "name": tool, "input": {"path": "src/a.py"}}
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": failed or "ok"}
    if failed:
        result["is_error"] = True
    said = {"role": "assistant", "content": [block], **more}
    answer = {"role": "user", "content": [result]}
    one.post("/sessions/run/messages", {"messages": [said, answer]})


def listed(one: Program, query: str = "") -> list[str]:
    """The agent's own tools in a context; `read_back` comes last."""
    *own, last = [tool["name"] for tool in one.get(f"/sessions/run/context{query}")["tools"]]
    assert last == "read_back"
    return own


def put(one: Program, body: Any = GRAPH) -> Any:
    response = one.ask("PUT", "/sessions/run/tools", body)
    assert response.status_code == 200, response.content
    return response.json()


def test_without_a_graph_everything_known_is_enabled(one: Program) -> None:
    found = one.get("/sessions/run/tools")
    assert found["number"] is None and found["graph"] is None
    assert found["enabled"] == [tool["name"] for tool in TOOLS] == found["unused"]
    assert found["likely"] == [] and found["list_cost"] is None
    assert one.get("/sessions/run/context")["toolset"] is None


def test_the_list_of_a_context_grows_with_use(one: Program) -> None:
    whole = one.get("/sessions/run/context")
    answer = put(one)
    assert answer["enabled"] == ["edit", "browser_open", "free"]
    small = one.get("/sessions/run/context")
    names = [tool["name"] for tool in small["tools"]]
    assert names == ["edit", "browser_open", "free", "read_back"]
    assert small["toolset"]["listed"] == names[:-1], "it belongs to no graph"
    assert small["toolset"]["left_out_tokens"] == answer["tokens"]["left_out"] > 0
    assert small["tokens"] == whole["tokens"] - small["toolset"]["left_out_tokens"]
    use(one, "edit", "t1")
    assert listed(one) == ["edit", "browser_open", "free", "undo_edit"], "new ones at the end"
    assert listed(one, "?at=1") == ["edit", "browser_open", "free"]
    reply = {tool["name"]: tool for tool in one.get("/sessions/run/tools")["tools"]}
    assert (reply["undo_edit"]["enabled_at"], reply["undo_edit"]["enabled_by"]) == (2, ["edit"])
    assert (reply["edit"]["uses"], reply["edit"]["first_step"]) == (1, 1)
    again = one.get(f"/sessions/run/context?context_id={small['context_id']}")
    same = ("tools", "messages", "tokens", "recited")
    assert [again[name] for name in same] == [small[name] for name in same], "exact for ever"


def test_what_is_kept_of_enabling_is_what_the_messages_give(one: Program) -> None:
    put(one)
    for number, tool in enumerate(["edit", "browser_open", "browser_click", "edit"]):
        use(one, tool, f"t{number}")
        if number % 2:
            one.get("/sessions/run/context")
    put(one, {"tools": [*GRAPH["tools"], {"name": "redo", "needs": ["undo_edit"]}]})
    use(one, "undo_edit", "t9")
    row = ToolGraph.objects.order_by("-number").first()
    assert row is not None and row.number == 2
    kept, again = tooling(row.session), tooling_at(row.session, 99)
    assert kept is not None and again is not None
    assert kept.enabling.enabled == again.enabling.enabled
    assert kept.enabling.used == again.enabling.used
    assert "redo" in kept.enabling.enabled


def test_a_mask_leaves_the_list_and_says_what_is_allowed(one: Program) -> None:
    put(one, GRAPH | STATES)
    first = one.get("/sessions/run/context?format=openai")
    assert len(first["tools"]) == 6 and first["toolset"]["left_out_tokens"] == 0
    choice = first["tool_choice"]
    assert choice["type"] == "allowed_tools" and choice["allowed_tools"]["mode"] == "auto"
    names = [tool["function"]["name"] for tool in choice["allowed_tools"]["tools"]]
    assert names == ["edit", "browser_open", "read_back"]
    use(one, "browser_open", "t1")
    assert one.get("/sessions/run/context?format=openai")["toolset"]["state"] == "browsing"
    said = one.get("/sessions/run/context")
    assert said["tools"][0]["name"] == "edit" and "tool_choice" not in said
    last = said["messages"][-1]["content"][-1]["text"]
    assert "browser_open, browser_click, read_back<" in last and 'state="browsing"' in last
    assert said["recited"] > 0
    again = one.get(f"/sessions/run/context?context_id={said['context_id']}")
    same = ("messages", "tokens", "recited", "tools")
    assert [again[name] for name in same] == [said[name] for name in same]
    assert said["tools"][-2]["name"] == "free", "the list keeps its order"


@pytest.mark.parametrize("allowed", [True, False])
def test_an_agents_own_read_back_is_masked_like_its_other_tools(one: Program, allowed: bool):
    own = {"name": "read_back", "description": "mine", "input_schema": {"type": "object"}}
    one.post("/sessions/run/messages", {"tools": [*TOOLS, own], "messages": []})
    idle = ["edit", *(["read_back"] if allowed else [])]
    put(one, {"tools": [], "sends": "all", "states": {"idle": idle}, "initial": "idle"})
    answer = one.get("/sessions/run/context?format=openai")
    names = [tool["function"]["name"] for tool in answer["tools"]]
    assert names.count("read_back") == 1
    choice = answer["tool_choice"]["allowed_tools"]["tools"]
    assert [tool["function"]["name"] for tool in choice] == idle


def test_nothing_allowed_is_said_as_the_provider_takes_it(one: Program) -> None:
    put(one, {"tools": [], "sends": "all", "states": {"wait": []}})
    assert one.get("/sessions/run/context")["tool_choice"] == {"type": "none"}
    assert one.get("/sessions/run/context?format=openai")["tool_choice"] == "none"


def test_a_cycle_is_refused_with_its_path(one: Program) -> None:
    tools = [{"name": "a", "needs": ["b"]}, {"name": "b", "needs": ["a"]}]
    response = one.ask("PUT", "/sessions/run/tools", {"tools": tools})
    problem = response.json()
    assert response.status_code == 422 and "a → b → a" in problem["detail"]
    assert problem["errors"][0]["pointer"] == "/tools/0/needs"
    assert not ToolGraph.objects.exists()
    wrong = one.ask("PUT", "/sessions/run/tools", {"tools": [{"name": 3}]}).json()
    assert wrong["errors"][0]["pointer"] == "/tools/0/name"


def test_the_same_graph_again_changes_nothing(one: Program) -> None:
    put(one)
    put(one)
    assert ToolGraph.objects.count() == 1
    assert AuditEntry.objects.filter(action="tools.set").count() == 1


def test_the_list_costs_what_a_mask_does_not(one: Program) -> None:
    put(one)
    use(one, "edit", "t1", usage={"input_tokens": 1_000, "output_tokens": 5})
    use(one, "edit", "t2", usage={"input_tokens": 1_100, "output_tokens": 5})
    cost = one.get("/sessions/run/tools")["list_cost"]
    assert cost["changed_at"] == [2] and cost["rewritten_tokens"] == 1_000
    assert cost["left_out_tokens"] > 0 and cost["saved_microusd"] > 0
    assert cost["rewritten_microusd"] > 0


def test_tools_of_others_are_not_there_and_readers_set_none(one: Program) -> None:
    reader, foreign = Program(one.team, ("read",)), Program(other_team())
    assert reader.ask("GET", "/sessions/run/tools").status_code == 200
    assert reader.ask("PUT", "/sessions/run/tools", GRAPH).status_code == 403
    for method in ("GET", "PUT"):
        assert foreign.ask(method, "/sessions/run/tools", GRAPH).status_code == 404
    assert not ToolGraph.objects.exists()


# A failed step done again


def test_a_failed_step_is_done_again_from_what_it_saw(one: Program) -> None:
    before = one.get("/sessions/run/context")
    use(one, "edit", "t1", failed="Error: old_string <not> found")
    use(one, "edit", "t2")
    again = one.get("/sessions/run/context?retry_of=1")
    assert (again["retry_of"], again["step"]) == (1, 3)
    assert again["seq"] == before["seq"], "what came since stands in none of it"
    said = again["messages"][-1]["content"]
    assert [part["text"] for part in said[:-1]] == ["mend src/a.py"]
    assert '<failed_step number="1">' in said[-1]["text"]
    assert "old_string &lt;not&gt; found" in said[-1]["text"]
    row = ManagedContext.objects.get(pk=again["context_id"])
    assert (row.retry_of, row.step) == (1, 3)
    exact = one.get(f"/sessions/run/context?context_id={again['context_id']}")
    same = ("messages", "tokens", "recited", "step", "retry_of")
    assert [exact[name] for name in same] == [again[name] for name in same]
    said = {"role": "assistant", "content": "done", "retry_of": 1}
    one.post("/sessions/run/messages", {"messages": [said], "context_id": again["context_id"]})
    retry = Retry.objects.get()
    assert (retry.step, retry.of_step) == (3, 1)
    measure(retry.session)
    events = one.get("/sessions/run/manifest?run=managed")["events"]
    retries = [(e["step"], e["label"]) for e in events if e["kind"] == "retry"]
    assert retries == [(3, "retries step 1")]
    history = one.get("/sessions/run/context")["messages"]
    assert "not&gt;" not in str(history) and "old_string <not> found" in str(history), "it stays"


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("?retry_of=2", "Nothing failed"),
        ("?retry_of=9", "No such step"),
        ("?retry_of=1&at=1", "Ambiguous context"),
    ],
)
def test_only_failed_steps_can_be_retried(one: Program, query: str, title: str) -> None:
    use(one, "edit", "t1", failed="no")
    use(one, "edit", "t2")
    response = one.ask("GET", f"/sessions/run/context{query}")
    assert response.status_code == 422 and response.json()["title"] == title


@pytest.mark.parametrize("wrong", [0, "1", True, 5])
def test_a_retry_names_a_step_that_there_is(one: Program, wrong: Any) -> None:
    use(one, "edit", "t1", failed="no")
    said = {"role": "assistant", "content": "again", "retry_of": wrong}
    response = one.ask("POST", "/sessions/run/messages", {"messages": [said]})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/messages/0/retry_of"
    assert not Retry.objects.exists()
