"""What a session's tool definitions cost, over the API and on its page."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import tokens
from compaction.context.session import Usage
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.importers import records
from sessions.models import Session
from sessions.models.tools.definitions import definition_use, definitions
from sessions.models.tools.tool_use import tool_use
from tests.sessions.made import reads, result, session, user
from tests.sessions.pages import page_of, signed_in
from tests.sessions.programs import Program

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

READ, WRITE = 300, 3_750
"""Nano-dollars per token of claude-sonnet-4-5."""


def defined(name: str, **more: Any) -> dict[str, Any]:
    says = f"does {name} " * 20
    return {"name": name, "description": says, "input_schema": {"type": "object"}, **more}


def begin(program: Program, tools: list[Any], name: str = "run", **fields: Any) -> None:
    program.ask("PUT", f"/sessions/{name}", {"model": "claude-sonnet-4-5", **fields})
    body = {"tools": tools, "messages": [{"role": "user", "content": "mend src/a.py"}]}
    program.post(f"/sessions/{name}/messages", body)


def use(program: Program, tool: str, name: str = "run", **usage: int) -> None:
    block = {"type": "tool_use", "id": f"t{usage}", "name": tool, "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"t{usage}", "content": "ok"}
    said: dict[str, Any] = {"role": "assistant", "content": [block]}
    if usage:
        said["usage"] = {"input_tokens": 0, "output_tokens": 5, **usage}
    messages = [said, {"role": "user", "content": [result]}]
    program.post(f"/sessions/{name}/messages", {"messages": messages})


def measured() -> Session:
    session = Session.objects.get()
    measure(session)
    session.refresh_from_db()
    return session


def test_each_definition_has_its_cost_and_unused_ones_come_first(program: Program) -> None:
    begin(program, [defined("edit"), defined("draw"), defined("plot")])
    use(program, "edit", cache_creation_input_tokens=3_000)
    use(program, "edit", cache_read_input_tokens=3_000, cache_creation_input_tokens=100)
    use(program, "edit", cache_creation_input_tokens=3_200)
    stored = measured()
    found = program.get("/sessions/run/tools")["definitions"]
    rate = 2 * WRITE + READ
    rows = [(row["tool"], row["calls"], row["used"]) for row in found["tools"]]
    assert rows == [("draw", 3, False), ("plot", 3, False), ("edit", 3, True)]
    for row in found["tools"]:
        assert row["microusd"] == (row["tokens"] * rate + 500) // 1000
    unused = sum(row["tokens"] for row in found["tools"][:2])
    assert found["unused_tokens"] == unused
    assert found["unused_microusd"] == (unused * rate + 500) // 1000
    assert (found["basis"], found["deferred"]) == ("estimated", [])
    page = page_of(signed_in(program.team), f"/sessions/{stored.pk}/tools/")
    assert "2 of 3 defined tools were never used" in page.text
    assert "in every call" in page.text


def test_a_log_without_definitions_is_unknown_and_its_hidden_prompt_inferred(
    program: Program,
) -> None:
    begin(program, [])
    use(program, "edit", cache_creation_input_tokens=9_000)
    stored = measured()
    answer = program.get("/sessions/run/tools")
    assert answer["definitions"] is None
    use_of = tool_use(stored).definitions
    assert use_of.hidden_tokens == stored.hidden_tokens > 8_000
    assert use_of.hidden_microusd == (use_of.hidden_tokens * WRITE + 500) // 1000
    page = page_of(signed_in(program.team), f"/sessions/{stored.pk}/tools/")
    assert "what they cost is unknown" in page.text
    assert "inferred from the first reported prompt" in page.text
    assert "never used" not in page.text


def test_calls_without_usage_are_simulated(program: Program) -> None:
    begin(program, [defined("edit"), defined("draw")])
    use(program, "edit")
    assert program.get("/sessions/run/tools")["definitions"]["basis"] == "simulated"


def test_tools_of_a_namespace_count_one_by_one_and_deferred_ones_not(program: Program) -> None:
    nested = [defined("fetch"), defined("merge", deferLoading=True)]
    space = {"type": "namespace", "name": "hub", "description": "a hub", "tools": nested}
    begin(program, [space, defined("wait", defer_loading=True)])
    use(program, "fetch", cache_creation_input_tokens=3_000)
    found = definitions(measured())
    assert list(found.sizes) == ["fetch"] and list(found.deferred) == ["merge", "wait"]
    answer = program.get("/sessions/run/tools")
    assert [row["tool"] for row in answer["definitions"]["tools"]] == ["fetch"]
    assert answer["definitions"]["deferred"] == ["merge", "wait"]


def test_what_a_search_found_is_sent_from_then_on(program: Program) -> None:
    found = [{"type": "tools", "tools": [defined("fetch", deferLoading=True)]}]
    log = session(
        user("find it", key="a"),
        reads("c1", "t1", "a.py", key="b"),
        result("t1", "text", key="c"),
        records.Message("tool", found, key="d"),
        records.Call("c1", model="claude-sonnet-4-5", usage=Usage(cache_write_5m=1_000)),
        reads("c2", "t2", "b.py", key="e"),
        result("t2", "text", key="f"),
        records.Call("c2", usage=Usage(cache_read=1_000, cache_write_5m=500)),
    )
    log.model = "claude-sonnet-4-5"
    stored = append(program.team, log, tokens.counted, source="test").session
    measure(stored)
    stored.refresh_from_db()
    found_by = definition_use(stored, definitions(stored), {"Read"})
    [row] = found_by.costs.rows
    assert (row.tool, row.calls) == ("fetch", 1)
    assert row.nanos == row.tokens * WRITE, "it stands after the prompt before it"
    assert found_by.costs.priced, "a call without a model has the session's"


def test_a_list_counts_until_another_replaces_it(program: Program) -> None:
    begin(program, [defined("edit"), defined("draw")])
    use(program, "edit", cache_creation_input_tokens=3_000)
    program.post("/sessions/run/messages", {"tools": [defined("edit")], "messages": []})
    use(program, "edit", cache_creation_input_tokens=3_100)
    measured()
    rows = program.get("/sessions/run/tools")["definitions"]["tools"]
    assert [(row["tool"], row["calls"]) for row in rows] == [("draw", 1), ("edit", 2)]


def test_tools_that_a_graph_has_not_enabled_cost_nothing(program: Program) -> None:
    begin(program, [defined("edit"), defined("undo")])
    graph = {"tools": ["edit", {"name": "undo", "needs": ["edit"]}]}
    program.ask("PUT", "/sessions/run/tools", graph)
    use(program, "edit", cache_creation_input_tokens=3_000)
    use(program, "edit", cache_creation_input_tokens=3_100)
    measured()
    rows = program.get("/sessions/run/tools")["definitions"]["tools"]
    assert {row["tool"]: row["calls"] for row in rows} == {"edit": 2, "undo": 1}
