"""The drawn tool graph of a team."""

from __future__ import annotations

import re

import pytest

from compaction.tools.habits import habits_of
from sessions.actions.accounts.teams import local_team
from sessions.actions.assessments.assessments import keep_assessment
from sessions.actions.record.append import append
from sessions.models import Assessment, Session
from sessions.models.accounts.teams import Team
from sessions.models.tools.tool_use import team_calls
from sessions.models.tools.unused import OfferedTool
from sessions.views.tools.graph import (
    APART,
    BESIDE,
    DOWN,
    MOST,
    WIDTH,
    ToolNode,
    _edge,
    drawing,
)
from tests.sessions.made import count, reads, result, says, session, user
from tests.sessions.pages import page_of, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.store]


def test_nodes_stand_by_level_with_uses_and_cost() -> None:
    habits = habits_of([["grep"], ["edit"], ["test"], ["grep"], ["edit"]])
    found = drawing(habits, {"edit": OfferedTool("edit", 1, 90, 5_000)})
    assert found is not None
    nodes = {node.name: node for node in found.nodes}
    assert (nodes["edit"].uses, nodes["edit"].microusd, nodes["grep"].microusd) == (2, 5_000, None)
    for edge in found.edges:
        assert found.nodes[edge.start].level <= found.nodes[edge.end].level
    for node in found.nodes:
        into = [edge for edge in found.edges if edge.end == node.index]
        strongest = sorted(into, key=lambda edge: -edge.count)[:1]
        assert sum(edge.strong for edge in into) == len(strongest)
        assert len({edge.y for edge in into}) == len(into), "no number over another"
        most = [max(edge.count for edge in into)] if into else []
        assert [edge.count for edge in into if edge.most] == most
    assert [node.index for node in found.nodes] == list(range(3))
    assert drawing(habits_of([]), {}) is None
    many = drawing(habits_of([[f"t{i}"] for i in range(MOST + 2)]), {})
    assert many is not None and (len(many.nodes), many.left_out) == (MOST, 2)


@pytest.mark.parametrize("level", [1, 0], ids=["before", "beside"])
def test_a_count_is_not_under_a_node_nor_beyond_the_drawing(level: int) -> None:
    after = (("start", 1_345),)
    nodes = [
        ToolNode(at, name, name, on, on * APART, at * DOWN, 9, 9, None, before, ())
        for at, (name, on, before) in enumerate([("start", 0, ()), ("end", level, after)])
    ]
    edge = _edge(nodes[0], nodes[1], 1_345, 1_345)
    assert edge.beside is (level == 0)
    wide = 7 * len("1,345×")
    if edge.beside:
        assert nodes[1].x + WIDTH < edge.x and edge.x + wide <= nodes[1].x + WIDTH + BESIDE
    else:
        assert nodes[0].x + WIDTH < edge.x - wide and edge.x < nodes[1].x


def test_lines_beside_the_last_nodes_make_a_drawing_wider() -> None:
    flat = drawing(habits_of([["grep"], ["edit"], ["test"]]), {})
    both = drawing(habits_of([["a"], ["b"]] * 5 + [["b"], ["a"]] * 5), {})
    for found in filter(None, (flat, both)):
        last = max(node.x for node in found.nodes) + WIDTH
        beside = any(edge.beside for edge in found.edges)
        assert found.width == last + (BESIDE if beside else 0)


def test_the_page_draws_it_and_says_what_is_unknown() -> None:
    team: Team = local_team()
    one = Session.objects.create(team=team, external_id="one")
    stored = habits_of([["grep"], ["<b>"], ["grep"], ["<b>"]]).stored()
    Assessment.objects.create(session=one, tools=stored)
    page = page_of(signed_in(), "/tools/")
    assert "Unknown: no session reports its tool definitions." in page.text
    assert "What enables what" in page.text
    assert len(re.findall(r'class="tool-node"', page.html)) == 2
    assert len(re.findall(r'class="tool-edge"', page.html)) == 1
    assert "<b>" not in page.html


def test_the_table_counts_calls_and_failures_by_tool() -> None:
    made = [
        user("Go.", key="a"),
        reads("c1", "t1", "a.py", key="b"),
        result("t1", "gone", key="c", error=True),
        reads("c2", "t2", "b.py", key="d"),
        result("t2", "text", key="e"),
        says("c3", "Done.", key="f"),
    ]
    found = append(local_team(), session(*made), count, source="test").session
    keep_assessment(found)
    assert team_calls(local_team()) == {"Read": (2, 1)}
    assert "Failures" in page_of(signed_in(), "/tools/").text
