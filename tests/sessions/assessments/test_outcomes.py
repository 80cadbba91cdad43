"""Outcome metrics of stored sessions, and the page of their tools."""

from __future__ import annotations

from typing import Any

import pytest

from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assessments import keep_assessment
from sessions.actions.record.append import append
from sessions.actions.record.measure import measure
from sessions.actions.tools.graphs import set_graph
from sessions.importers import records
from sessions.models import Blob, Session
from sessions.models.record.values import MissingBlob
from sessions.models.tools.tool_use import team_habits, tool_use
from tests.sessions.made import count, reads, result, session, user
from tests.sessions.people import browser, member, shown

pytestmark = pytest.mark.django_db

SCHEMA = {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["why"]}


def stored(*made: records.Record, external_id: str = "s1") -> Session:
    of = session(*made, external_id=external_id)
    found = append(local_team(), of, count, source="test").session
    measure(found)
    return found


def defines(*names: str) -> records.Message:
    tools: list[Any] = [{"name": name, "input_schema": SCHEMA} for name in names]
    return records.Message("system", [{"type": "tools", "tools": tools}])


def talk(*more: records.Record) -> tuple[records.Record, ...]:
    return (
        *more,
        user("mend src/a.py"),
        reads("r1", "t1", "/home/me/src/a.py"),
        result("t1", "x = 1"),
        reads("r2", "t2", "/etc/some_other.conf"),
        result("t2", "no such file", error=True),
    )


def test_drift_schemas_and_habits_are_kept_with_the_assessment() -> None:
    row = keep_assessment(stored(*talk(defines("Read", "Never"))))
    assert (row.judged_steps, row.adrift_steps) == (2, 1)
    assert (row.checked_calls, row.schema_violations) == (2, 2)
    assert team_habits(local_team()).pairs("Read") == {"Read": 1}


def test_results_are_read_only_where_they_show_the_list() -> None:
    def tasks(call: str, tool_call: str, name: str) -> records.Message:
        given = {"type": "tool_use", "id": tool_call, "name": name, "input": {"subject": "s"}}
        return records.Message("assistant", [given], key=f"k{call}", call=call)

    listed = "#1 [pending] mend lib/other.py"
    one = stored(*talk(tasks("c1", "l1", "TaskList"), result("l1", listed, key="kl")))
    assert keep_assessment(one).judged_steps == 2
    shown = one.blocks.filter(type="tool_result")
    assert Blob.objects.filter(sha__in=shown.filter(tool="Read").values("sha")).delete()[0] == 2
    assert keep_assessment(one).judged_steps == 2
    Blob.objects.filter(sha__in=shown.filter(tool="TaskList").values("sha")).delete()
    with pytest.raises(MissingBlob):
        keep_assessment(one)


def test_what_nothing_tells_stays_unknown() -> None:
    row = keep_assessment(stored(user("go on")))
    assert (row.judged_steps, row.checked_calls, row.tools) == (None, None, {})


def test_a_session_without_a_graph_tells_what_it_used() -> None:
    found = tool_use(stored(*talk(defines("Read", "Never"))))
    rows = {row.name: row for row in found.rows}
    assert (rows["Read"].uses, rows["Read"].first, rows["Read"].failures) == (2, 1, 1)
    assert found.unused == ["Never"] and found.cost is None
    assert [one.tool for one in found.likely] == ["Read"]


def test_the_page_tells_what_is_enabled_by_what() -> None:
    one = stored(*talk(defines("Read", "<Edit>", "Bash")))
    tools = [
        {"name": "Read"},
        {"name": "<Edit>", "needs": ["Read"]},
        {"name": "Never", "needs": ["x"]},
    ]
    set_graph(one, {"tools": tools, "states": {"first": ["Read"]}})
    client = browser(member(local_team(), "ann"))
    page = shown(client.get(f"/sessions/{one.pk}/tools/"))
    for said in ("Needs nothing", "In no graph", "not yet", "&lt;Edit&gt;",
                 "Which tool the next call likely uses", "A list that grows, or a mask",
                 "masked", "unknown"):  # fmt: skip
        assert said in page.html, said
    assert "<Edit>" not in page.html


def test_pages_without_anything_say_so() -> None:
    client = browser(member(local_team(), "ann"))
    bare = stored(user("hello"))
    assert "No tools yet" in shown(client.get(f"/sessions/{bare.pk}/tools/")).html
    assert "No tools yet" in shown(client.get("/tools/")).html
    keep_assessment(stored(*talk(), external_id="s2"))
    assert "<code" in shown(client.get("/tools/")).html
