"""Chats in lines: a message per line, or a conversation; and the stream of Claude Code."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sessions.second_reader import arrays
from sessions.second_reader.claude_code import usage_of_response
from sessions.second_reader.reread import Json, Reread, RereadStep, dicts, objects, pieces, within

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_OF_ANTHROPIC = ("tool_use", "tool_result", "thinking")


def read(data: bytes) -> list[Reread]:
    """Read the conversations of a file, and then what its lines say to one another."""
    listed = list(objects(data))
    alone = [
        (at, one)
        for at, one in listed
        if _is_said(one) and ("content" in one or one.get("tool_calls"))
    ]
    rest = [(at, dicts(one.get("messages"))) for at, one in listed if (at, one) not in alone]
    talks = [[(at, one) for one in said] for at, said in rest if said and all(map(_is_said, said))]
    return [arrays.sequence(_said(at, one) for at, one in talk) for talk in [*talks, alone]]


def _is_said(one: dict[str, Json]) -> bool:
    return one.get("role") in _ROLES


def _said(at: int, one: dict[str, Json]) -> arrays.Said:
    forms = {part.get("type") for part in dicts(one.get("content"))}
    return (arrays.message if forms & {*_OF_ANTHROPIC} else arrays.chat)(at, one)


def stream(data: bytes) -> list[Reread]:
    """Read a stream of Claude Code: the main agent, and those that its tools began."""
    agents: dict[str, Reread] = {}
    calls: dict[str, RereadStep] = {}
    for at, given in _streamed(data):
        agent = agents.setdefault(str(given.get("parent_tool_use_id") or ""), Reread())
        message = given.get("message")
        if given.get("subtype") == "compact_boundary":
            agent.end, agent.compactions = [], agent.compactions + 1
        elif given.get("type") not in ("user", "assistant") or given.get("error"):
            continue
        elif given["type"] == "assistant" and within(message, "model") != "<synthetic>":
            named = str(within(message, "id") or at)
            if named not in calls:
                calls[named] = RereadStep(at, list(agent.end))
                agent.steps.append(calls[named])
            step = calls[named]
            step.billed = usage_of_response(within(message, "usage")) or step.billed
        agent.end = [*agent.end, *pieces(within(message, "content"), at)]
    return list(agents.values())


def _streamed(data: bytes) -> Iterator[tuple[int, dict[str, Json]]]:
    """What is sent, with its line or its place in a recording."""
    try:
        whole = json.loads(data)
    except ValueError:
        whole = None
    recorded = dicts(within(whole, "messages") or whole)
    for at, given in enumerate(recorded, start=1) if recorded else objects(data):
        yield at, given["message"] if "direction" in given else given
