"""Tools that no session of an agent used: on the dashboard and on the team's page."""

from __future__ import annotations

import pytest

from sessions.actions.assessments.assess import assess_session
from sessions.models import Assessment, Session
from sessions.models.tools.unused import ENOUGH, unused_tools
from tests.sessions.pages import page_of, signed_in
from tests.sessions.programs import Program
from tests.sessions.tools.test_definitions import begin, defined, use

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("jobs_wait")]

TOOLS = [defined("edit"), defined("draw"), defined("plot")]


def sessions(program: Program, agent: str, tools: list[str]) -> None:
    for number, tool in enumerate(tools):
        name = f"{agent}-{number}"
        begin(program, TOOLS, name, agent=agent)
        use(program, tool, name, cache_creation_input_tokens=3_000)
        assess_session(Session.objects.get(external_id=name))


def test_an_assessment_keeps_what_definitions_cost(program: Program) -> None:
    sessions(program, "scout", ["edit"])
    kept = Assessment.objects.get()
    tools = kept.definitions["tools"]
    assert set(tools) == {"edit", "draw", "plot"}
    assert tools["draw"][1] == (tools["draw"][0] * 3_750 + 500) // 1000
    assert kept.definitions["used"] == ["edit"] and kept.definitions["basis"] == "estimated"
    assert kept.unused_tokens == tools["draw"][0] + tools["plot"][0]
    begin(program, [], "bare")
    use(program, "edit", "bare", cache_creation_input_tokens=3_000)
    assess_session(Session.objects.get(external_id="bare"))
    bare = Assessment.objects.get(session__external_id="bare")
    assert (bare.definitions, bare.unused_tokens) == ({}, None)


def test_what_one_session_used_is_used(program: Program) -> None:
    sessions(program, "scout", ["edit"] * ENOUGH)
    sessions(program, "few", ["edit"] * (ENOUGH - 1))
    [agent] = unused_tools(program.team).agents
    assert (agent.agent, agent.sessions) == ("scout", ENOUGH)
    assert {one.name for one in agent.unused} == {"draw", "plot"}
    kept = [row.definitions["tools"] for row in Assessment.objects.filter(session__agent="scout")]
    assert agent.microusd == sum(one[name][1] for one in kept for name in ("draw", "plot"))
    assert agent.tokens == sum(kept[0][name][0] for name in ("draw", "plot"))
    sessions(program, "more", ["edit"] * ENOUGH + ["draw"])
    found = {
        one.agent: [tool.name for tool in one.unused] for one in unused_tools(program.team).agents
    }
    assert found["more"] == ["plot"] and len(found["scout"]) == 2


def test_the_dashboard_says_it_and_leads_to_the_list(program: Program) -> None:
    client = signed_in(program.team)
    sessions(program, "scout", ["edit"] * (ENOUGH - 1))
    assert "unused tool" not in page_of(client, "/dashboard/").text
    sessions(program, "scout", ["edit"] * ENOUGH)
    page = page_of(client, "/dashboard/")
    assert "Remove 2 unused tools of scout" in page.text
    assert f"tokens of definitions in each prompt, {ENOUGH} sessions." in page.text
    assert page.links["See which"] == "/tools/?range=7d#unused"
    listed = page_of(client, "/tools/?range=7d")
    assert "Tools never used" in listed.text and f"{ENOUGH} of {ENOUGH}" in listed.text
    assert "Tools never used" not in page_of(client, "/tools/?from=2001-01-01").text
    assert "Tools never used" in page_of(client, "/tools/?range=nonsense").text
