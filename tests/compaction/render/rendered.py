"""Contexts, and the requests made of them."""

from __future__ import annotations

from typing import Any

from compaction import render
from tests.compaction.wires import Wires, text
from tests.openai_rules import openai as openai_problems
from tests.provider_rules import anthropic as problems

Json = dict[str, Any]


TOOL = {"name": "Read", "description": "reads", "input_schema": {"type": "object"}}


def made(it: Wires, *, breakpoints: bool = False) -> Json:
    """The body for the Messages API, which would take it."""
    body = render.anthropic(it.blocks, it.wire_of, breakpoints=breakpoints)
    part = {name: body[name] for name in body if name != "notes"}
    assert problems({"model": "m", "max_tokens": 1, **part}) == []
    return body


def chat(it: Wires) -> Json:
    """The body for chat completions, which would take it."""
    body = render.openai(it.blocks, it.wire_of)
    assert openai_problems({name: body[name] for name in body if name != "notes"}) == []
    return body


def short(part: Json) -> Any:
    form = part["type"]
    if form == "text":
        return part["text"]
    if form == "tool_use":
        return f"{part['id']}?"
    if form == "tool_result":
        return f"{part['tool_use_id']}={part['content']}"
    return form


def ask() -> Wires:
    return Wires().say("user", text("do it"))
