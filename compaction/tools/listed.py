"""The tools of a list as a provider takes it: their names and sizes, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from compaction.context import wire

_DEFERRED = ("defer_loading", "deferLoading")


class SizedTool(NamedTuple):
    """A tool, the tokens of its definition, and whether it is sent only once the model has searched
    for it."""

    name: str
    tokens: int
    deferred: bool


def tools_in(setup: Mapping[str, Any]) -> list[Any]:
    """Return the definitions in a list that have a name."""
    given = setup.get("tools")
    return [tool for tool in given if tool_name(tool)] if isinstance(given, list) else []


def tool_name(tool: Any) -> str:
    """Return the name in a tool definition of either provider; empty if there is none."""
    if not isinstance(tool, dict):
        return tool if isinstance(tool, str) else ""
    inner = tool.get(str(tool.get("type") or ""))
    given = inner if isinstance(inner, dict) else tool
    return str(given.get("name") or "")


def each(tools: Iterable[Any]) -> Iterator[Any]:
    """Yield tools one by one: Codex groups those of a server in a namespace, and calls them by
    their own names."""
    for tool in tools:
        if isinstance(tool, dict) and tool.get("type") == "namespace":
            yield from tools_in(tool)
        else:
            yield tool


def sized(setup: Mapping[str, Any], count: Callable[[str], int]) -> list[SizedTool]:
    """Return the tools of a list with the tokens that `count` gives them, each name once."""
    found: dict[str, SizedTool] = {}
    for tool in each(tools_in(setup)):
        text = wire.encode({"tool": tool}).decode("utf-8", "replace")
        waits = isinstance(tool, dict) and any(tool.get(name) is True for name in _DEFERRED)
        name = tool_name(tool)
        if name not in found:
            found[name] = SizedTool(name, count(text), waits)
    return list(found.values())
