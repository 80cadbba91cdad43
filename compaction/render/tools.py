"""Convert tool definitions between providers."""

from __future__ import annotations

import re
from typing import Any

from compaction.context.blocks import Block
from compaction.context.wire import WireBlock
from compaction.render.content import Dialect, Notes, permitted, sendable

_SERVER_TOOL = re.compile(r"[a-z_]+_\d{8}\Z")
_KEPT = (
    "allowed_callers", "defer_loading", "description", "eager_input_streaming", "input_examples",
    "strict",
)  # fmt: skip
"""Fields of a tool that the Messages API accepts, besides its name and schema."""


def tools_of(block: Block, wire: WireBlock, dialect: Dialect, notes: Notes) -> list[WireBlock]:
    """Return the tools of a setup block in the form of the Messages API, each name once.

    Schemas keep the order of their keys, in which models write arguments.
    """
    made: dict[str, WireBlock] = {}
    given = wire.get("tools")
    for tool in given if isinstance(given, list) else []:
        found = _tool(tool, dialect)
        if found is None:
            notes.add("An invalid entry was left out of the tool list", block)
        elif found["name"] in made:
            notes.add("A second tool with the same name was left out", block)
        else:
            made[found["name"]] = found
    return list(made.values())


def _tool(tool: Any, dialect: Dialect) -> WireBlock | None:
    if isinstance(tool, str):
        tool = {"name": tool}
    if not isinstance(tool, dict):
        return None
    form = str(tool.get("type") or "custom")
    if _SERVER_TOOL.match(form) and tool.get("name"):
        kept = {name: sendable(tool[name]) for name in sorted(tool) if name != "cache_control"}
        return {**kept, "name": permitted(str(kept["name"]), dialect.names)}
    inner = tool.get(form)
    given = inner if isinstance(inner, dict) else tool
    if not isinstance(given.get("name"), str) or not given["name"]:
        return None
    made = {name: sendable(given[name]) for name in _KEPT if given.get(name) is not None}
    if not isinstance(made.get("description", ""), str):
        del made["description"]
    made["input_schema"] = _schema(given.get("input_schema", given.get("parameters")), form)
    made["name"] = permitted(given["name"], dialect.names)
    return {name: made[name] for name in sorted(made)}


def _schema(given: Any, form: str) -> WireBlock:
    """Return the schema of a tool's input, which must be an object."""
    if not isinstance(given, dict):
        # A custom tool of OpenAI takes free text, which we store in one `input` field.
        free = {"properties": {"input": {"type": "string"}}, "required": ["input"]}
        return {"type": "object", **(free if form == "custom" and given is not None else {})}
    schema: WireBlock = sendable(given)
    return schema if schema.get("type") == "object" else {**schema, "type": "object"}


def as_function(tool: WireBlock, notes: Notes) -> WireBlock | None:
    """Return a tool for chat completions; None for tools that run at another provider."""
    if "input_schema" not in tool:
        notes.add(f"The tool {tool['name']} was left out: it runs at another provider")
        return None
    function: WireBlock = {n: tool[n] for n in ("description", "name", "strict") if n in tool}
    function["parameters"] = tool["input_schema"]
    return {"function": {n: function[n] for n in sorted(function)}, "type": "function"}
