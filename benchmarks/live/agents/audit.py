"""What must hold of a managed session, from the provider's own log and from what is stored."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from benchmarks.processes import say
from contextlab.client import ContextLab

Json = dict[str, Any]


class Stability(NamedTuple):
    """Managed requests; those that are no context of the replay; pairs whose beginning differs,
    and those of them without a revision between."""

    requests: int
    unknown: list[str]
    edited: int
    undeclared: list[str]


def bare(value: Any) -> Any:
    """A value without cache breakpoints, which move."""
    if isinstance(value, dict):
        return {name: bare(one) for name, one in value.items() if name != "cache_control"}
    return [bare(one) for one in value] if isinstance(value, list) else value


def units(body: Json) -> list[str]:
    """A request of the Messages or Responses API as texts: tools, instructions, then each block."""
    items = body.get("messages", body.get("input", ()))
    added = [one for one in items if one.get("type") == "additional_tools"]
    setup = (body.get("tools") or added, body.get("system"), body.get("instructions"))
    found = [json.dumps(bare(one)) for one in setup]
    for message in (one for one in items if one not in added):
        content = message.get("content")
        parts = content if isinstance(content, list) and "messages" in body else [message]
        found += [json.dumps([message.get("role"), bare(part)]) for part in parts]
    return found


def stability(lab: ContextLab, session: str, format: str, bodies: list[Json]) -> Stability:
    """Compare managed requests, in order, with the contexts of the replay and with each other."""
    steps = lab.request("GET", f"sessions/{session}")["steps"]
    contexts: dict[tuple[str, ...], int] = {}
    for at in range(1, steps + 1):
        query = {"at": at, "format": format}
        context = lab.request("GET", f"sessions/{session}/context", query=query)
        name = "input" if format == "responses" else "messages"
        contexts[tuple(units({name: context["messages"]})[3:])] = at
    revisions = lab.request("GET", f"sessions/{session}/revisions")["revisions"]
    changed = {one["step"] for one in revisions}
    undeclared, unknown, edited, before = [], [], 0, (0, [""])
    for number, body in enumerate(bodies):
        now = units(body)
        at = contexts.get(tuple(now[3:]), 0)
        if not at:
            unknown.append(f"request {number} (after step {before[0]})")
            at = before[0]
        if number and now[: len(before[1])] != before[1]:
            edited += 1
            if not changed & set(range(before[0] + 1, at + 1)):
                undeclared.append(f"request {number} (step {at} after {before[0]})")
        before = at, now
    return Stability(len(bodies), unknown, edited, undeclared)


Row = tuple[str, bool, Any]
"""A check: what it says, whether it holds, and its figure."""


def stable(found: Stability) -> list[Row]:
    """The checks of stability."""
    return [
        ("managed requests that are no context of the replay", not found.unknown, found.unknown),
        ("requests whose beginning changed", found.edited > 0, found.edited),
        ("… without a revision", not found.undeclared, found.undeclared),
    ]


def failed(rows: list[Row]) -> int:
    """Say what holds; return how many checks failed."""
    for name, holds, figure in rows:
        say(f"{'ok ' if holds else 'NO '} {name}: {figure}")
    return sum(not holds for _, holds, _ in rows)


def messages(lab: ContextLab, session: str) -> list[Json]:
    """All messages as they are stored."""
    found: list[Json] = []
    after: int | None = 0
    while after is not None:
        query = {"after": after, "limit": 500}
        page = lab.request("GET", f"sessions/{session}/messages", query=query)
        found += page["messages"]
        after = page["next"]
    return found


def lost(stored: list[Json], expected: list[Json]) -> list[str]:
    """Which tool uses and results are not stored as they were, in their order.

    `expected` are blocks of the Messages API, as the agent has them.
    """
    kinds = {"tool_use": "id", "tool_result": "tool_use_id"}
    have = {
        (block["type"], block[kinds[block["type"]]]): block
        for message in stored
        for block in message["content"]
        if block["type"] in kinds
    }
    missing = []
    for block in expected:
        kind = block["type"]
        found = have.get((kind, block[kinds[kind]]))
        if found is None or said(found) != said(block):
            missing.append(f"{kind} {block[kinds[kind]]}")
    return missing


def said(block: Json) -> Any:
    """What a tool use or result says, in one form."""
    if block["type"] == "tool_use":
        return block["input"]
    content = block.get("content") or ""
    return content if isinstance(content, str) else "".join(one.get("text", "") for one in content)
