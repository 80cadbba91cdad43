"""Tools enabled by use: never taken back, in whatever order; cycles refused with their path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.tools.document import InvalidGraph, document_of, graph_of
from compaction.tools.graph import LEAST_ONE, Enabling, ToolGraph, cycle, list_cost, matches

NAMES = ["a_read", "a_write", "b_open", "b_click", "c"]
NEEDS = [*NAMES, "a_*", "b_*", "z_*", "*", LEAST_ONE, "later"]


def graphs() -> st.SearchStrategy[ToolGraph]:
    """Graphs of up to five tools, with and without cycles."""
    needs = st.lists(st.sampled_from(NEEDS), max_size=2, unique=True).map(tuple)
    return st.dictionaries(st.sampled_from(NAMES), needs, max_size=5).map(ToolGraph)


def enabling(needs: dict[str, tuple[str, ...]], **more: Any) -> Enabling:
    made = Enabling()
    made.register(ToolGraph(needs, **more), 1)
    return made


def test_a_name_means_itself_and_a_group_what_begins_so() -> None:
    assert matches("edit", "edit") and not matches("edit", "editor")
    assert matches("browser_*", "browser_open") and not matches("browser_*", "browse")


def test_tools_without_needs_are_there_at_once_and_others_by_use() -> None:
    made = enabling({"edit": (), "undo": ("edit",), "many": (LEAST_ONE,), "both": ("edit", "b_*")})
    assert list(made.enabled) == ["edit"]
    assert [(one.tool, one.step, one.by) for one in made.use("edit", 4)] == [
        ("undo", 4, ("edit",)),
        ("many", 4, ("edit",)),
    ]
    assert made.use("edit", 5) == [], "a second use enables nothing"
    assert [one.by for one in made.use("b_open", 6)] == [("edit", "b_open")], "all needs are met"


def test_what_was_used_all_the_same_is_there() -> None:
    made = enabling({"edit": (), "undo": ("edit",)})
    assert [tuple(one) for one in made.use("undo", 2)] == [("undo", 2, ("undo",))]


def test_tools_register_during_a_session_and_none_leaves() -> None:
    made = enabling({"edit": (), "undo": ("edit",)})
    made.use("edit", 2)
    came = made.register(ToolGraph({"redo": ("undo",), "check": ("edit",), "edit": ("redo",)}), 3)
    assert [(one.tool, one.step) for one in came] == [("check", 3)]
    assert made.is_enabled("undo", 3) and made.is_enabled("edit", 3), "never taken back"
    assert not made.is_enabled("redo", 3)


@pytest.mark.parametrize(
    ("needs", "path"),
    [
        ({"a": ("a",)}, ("a", "a")),
        ({"a": ("b",), "b": ("c",), "c": ("b",)}, ("b", "c", "b")),
        ({"a": (), "b": ("a", "c"), "c": ("b",)}, ("b", "c", "b")),
        ({"a": (LEAST_ONE,)}, ("a", LEAST_ONE, "a")),
        ({"b_open": ("b_*",), "b_click": ("b_open",)}, ("b_open", "b_*", "b_open")),
    ],
)
def test_a_cycle_names_its_path(needs: dict[str, tuple[str, ...]], path: tuple[str, ...]) -> None:
    assert cycle(ToolGraph(needs)) == path
    tools = [{"name": name, "needs": list(which)} for name, which in needs.items()]
    with pytest.raises(InvalidGraph, match="wait for each other: " + " → ".join(path)[:3]):
        graph_of({"tools": tools})


@pytest.mark.parametrize(
    "needs",
    [
        {"b_open": (), "b_click": ("b_*",)},
        {"a": ("comes_later",)},
        {"a": (), "b": (LEAST_ONE,)},
        {"a": ("z_*",), "b": ("a",)},
    ],
)
def test_what_can_still_be_enabled_is_no_cycle(needs: dict[str, tuple[str, ...]]) -> None:
    assert cycle(ToolGraph(needs)) == ()


def test_states_allow_names_and_groups_and_uses_lead_on() -> None:
    made = enabling(
        {"b_open": (), "b_click": ("b_open",), "write": ()},
        sends="all",
        states={"idle": ("write", "b_open"), "browsing": ("b_*",)},
        after={"b_open": "browsing", "write": "idle"},
        initial="idle",
    )
    tools = ["b_open", "b_click", "write", "stranger"]
    assert [one for one in tools if made.allows(one, 1)] == ["b_open", "write"]
    made.use("b_open", 2)
    assert [one for one in tools if made.allows(one, 2)] == ["b_open", "b_click"]
    made.use("b_click", 3)
    made.use("write", 4)
    assert [tuple(one) for one in made.moves] == [
        (1, "idle", ""),
        (2, "browsing", "b_open"),
        (4, "idle", "write"),
    ]
    assert made.state_at(3) == "browsing"
    assert made.listed(tools, 4) == tools, "the list stays where a mask says which"


def test_the_list_costs_cache_and_a_mask_does_not() -> None:
    made = enabling({"edit": (), "undo": ("edit",), "never": ("missing",)})
    made.use("edit", 3)
    sizes = {"edit": 100, "undo": 50, "never": 30, "free": 10}
    found = list_cost(made, sizes, [1_000, 2_000, 3_000, 4_000])
    assert found.changes == (3,)
    assert found.less == 80 + 80 + 30 + 30
    assert found.rewritten == 2_000 - 80, "what was sent at step 2 is written again"
    assert list_cost(made, sizes, [None, None, 1, 1]).rewritten is None, "unknown, not zero"


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        (None, ""),
        ({}, "/tools"),
        ({"tools": [3]}, "/tools/0"),
        ({"tools": [{"name": ""}]}, "/tools/0/name"),
        ({"tools": [{"name": "a*"}]}, "/tools/0/name"),
        ({"tools": [{"name": LEAST_ONE}]}, "/tools/0/name"),
        ({"tools": ["a", "a"]}, "/tools/1/name"),
        ({"tools": [{"name": "a", "needs": "b"}]}, "/tools/0/needs"),
        ({"tools": [{"name": "a", "needs": [1]}]}, "/tools/0/needs/0"),
        ({"tools": [{"name": "a", "need": []}]}, "/tools/0/need"),
        ({"tools": [], "sends": "some"}, "/sends"),
        ({"tools": [], "states": []}, None),
        ({"tools": [], "states": {"s": "x"}}, "/states/s"),
        ({"tools": [], "states": {"s": []}, "after": {"a": "t"}}, "/after/a"),
        ({"tools": [], "initial": "s"}, "/initial"),
        ({"tools": ["a"] * 1_001}, "/tools"),
        ({"tools": [], "colour": 1}, "/colour"),
        ({"tools": ["x\n"]}, "/tools/0/name"),
    ],
)
def test_a_wrong_document_is_refused_by_its_place(document: Any, pointer: str | None) -> None:
    if pointer is None:
        assert graph_of(document) == ToolGraph()
        return
    with pytest.raises(InvalidGraph) as refused:
        graph_of(document)
    assert refused.value.pointer == pointer


@given(graphs(), st.lists(st.sampled_from([*NAMES, "later", "z_z"]), max_size=12), st.data())
def test_enabling_is_monotone_and_does_not_go_by_order(
    graph: ToolGraph, uses: list[str], data: st.DataObject
) -> None:
    made, before, lists = Enabling(), set[str](), []
    made.register(graph, 1)
    for step, tool in enumerate(uses, 2):
        made.use(tool, step)
        assert before <= set(made.enabled), "never taken back"
        before = set(made.enabled)
        lists.append(made.listed(NAMES, step))
    for earlier, later in zip(lists, lists[1:], strict=False):
        assert later[: len(earlier)] == earlier, "a list begins with the one before"
    other = Enabling()
    needs = dict(data.draw(st.permutations(list(graph.needs.items()))))
    other.register(ToolGraph(needs), 1)
    for step, tool in enumerate(data.draw(st.permutations(uses)), 2):
        other.use(tool, step)
    assert set(other.enabled) == set(made.enabled)


@given(graphs())
def test_without_a_cycle_everything_can_be_enabled(graph: ToolGraph) -> None:
    path = cycle(graph)
    made = Enabling()
    made.register(graph, 1)
    for need in {need for needs in graph.needs.values() for need in needs} - {LEAST_ONE}:
        if not any(matches(need, tool) for tool in graph.needs):
            made.use(need.replace("*", "new"), 1)
    for _ in NAMES:
        for tool in list(made.enabled):
            made.use(tool, 2)
    assert (set(graph.needs) <= set(made.enabled)) == (not path)
    if path:
        assert path[0] == path[-1] and path[0] in graph.needs
        assert cycle(ToolGraph(dict(reversed(graph.needs.items())))), "whatever the order"


@given(graphs())
def test_a_document_says_the_same_again(graph: ToolGraph) -> None:
    if not cycle(graph):
        assert graph_of(document_of(graph)) == graph
