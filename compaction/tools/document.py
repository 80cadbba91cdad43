"""The JSON document of a tool graph, as people and agents write it, validated field by field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.tools.graph import GROUP, LEAST_ONE, OWN_USE, ToolGraph, cycle

MOST_TOOLS = 1_000
MOST_NEEDS = 50
MOST_STATES = 100
LONGEST_NAME = 128
"""Maximum characters of a name, as providers allow."""

_FIELDS = ("tools", "sends", "states", "after", "initial")


class InvalidGraph(ValueError):
    """An invalid tool graph: the place (a JSON pointer) and the problem."""

    def __init__(self, pointer: str, problem: str) -> None:
        super().__init__(f"{pointer}: {problem}")
        self.pointer, self.problem = pointer, problem


def graph_of(document: Any) -> ToolGraph:
    """Parse {tools: [{name, needs}], sends, states, after, initial}; only `tools` is required.

    Raises InvalidGraph; if tools wait for each other, it names the cycle.
    """
    given = _object(document, "")
    for name in given:
        if name not in _FIELDS:
            raise InvalidGraph(f"/{name}", f"is not a field; use one of {', '.join(_FIELDS)}")
    sends = given.get("sends", "enabled")
    if sends not in ("enabled", "all"):
        raise InvalidGraph("/sends", "must be enabled or all")
    needs = _needs(given.get("tools"))
    states = _states(given.get("states"))
    graph = ToolGraph(needs, sends, states, *_moves(given, states))
    if path := cycle(graph):
        place = list(needs).index(path[0])
        said = f"names tools that wait for each other: {' → '.join(path)}"
        raise InvalidGraph(f"/tools/{place}/needs", said)
    return graph


def document_of(graph: ToolGraph) -> dict[str, Any]:
    """Return the document of a graph, with every field written out."""
    return {
        "tools": [{"name": tool, "needs": list(needs)} for tool, needs in graph.needs.items()],
        "sends": graph.sends,
        "states": {state: list(allowed) for state, allowed in graph.states.items()},
        "after": dict(graph.after),
        "initial": graph.initial,
    }


def is_name(tool: str) -> bool:
    """Return whether a graph can name a tool."""
    try:
        return bool(_name(tool, "", group=False))
    except InvalidGraph:
        return False


def _needs(given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, list):
        raise InvalidGraph("/tools", 'must be a list: [{"name", "needs"}]')
    if len(given) > MOST_TOOLS:
        raise InvalidGraph("/tools", f"has more than {MOST_TOOLS} tools")
    found: dict[str, tuple[str, ...]] = {}
    for index, item in enumerate(given):
        where = f"/tools/{index}"
        tool = _object({"name": item} if isinstance(item, str) else item, where)
        for field in tool:
            if field not in ("name", "needs"):
                raise InvalidGraph(f"{where}/{field}", "is not a field; use name or needs")
        name = _name(tool.get("name"), f"{where}/name", group=False)
        if name in found:
            raise InvalidGraph(f"{where}/name", f"{name} is listed twice")
        found[name] = _names(tool.get("needs", []), f"{where}/needs", MOST_NEEDS)
    return found


def _states(given: Any) -> dict[str, tuple[str, ...]]:
    states = _object(given or {}, "/states")
    if len(states) > MOST_STATES:
        raise InvalidGraph("/states", f"has more than {MOST_STATES} states")
    return {
        _name(state, "/states", group=False): _names(allowed, f"/states/{state}", MOST_TOOLS)
        for state, allowed in states.items()
    }


def _moves(given: Mapping[str, Any], states: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    """Return the state each use leads to, and the initial state: the first one by default."""
    after = _object(given.get("after") or {}, "/after")
    for tool, state in after.items():
        _name(tool, "/after")
        if not isinstance(state, str) or state not in states:
            raise InvalidGraph(f"/after/{tool}", f"must be one of the states: {', '.join(states)}")
    initial = given.get("initial") or next(iter(states), "")
    if not isinstance(initial, str) or (initial and initial not in states):
        raise InvalidGraph("/initial", f"must be one of the states: {', '.join(states)}")
    return dict(after), initial


def _object(given: Any, pointer: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise InvalidGraph(pointer, "must be an object")
    return given


def _names(given: Any, pointer: str, most: int) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise InvalidGraph(pointer, "must be a list of names")
    if len(given) > most:
        raise InvalidGraph(pointer, f"has more than {most} names")
    names = (_name(one, f"{pointer}/{index}") for index, one in enumerate(given))
    return tuple(dict.fromkeys(names))


def _name(given: Any, pointer: str, *, group: bool = True) -> str:
    if not isinstance(given, str) or not given or len(given) > LONGEST_NAME:
        raise InvalidGraph(pointer, f"must be a name of 1 to {LONGEST_NAME} characters")
    if not given.isprintable():
        raise InvalidGraph(pointer, "must contain printable characters only")
    bare = given[: -len(GROUP)] if group and given.endswith(GROUP) else given
    if GROUP in bare or (not group and given in (LEAST_ONE, OWN_USE)):
        raise InvalidGraph(pointer, f"must be a tool name, not a group that ends with {GROUP}")
    return given
