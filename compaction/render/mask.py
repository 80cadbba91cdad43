"""The tools that may be used now, in the form each provider accepts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import Any

from compaction.context.wire import WireBlock
from compaction.render.chat import DIALECT
from compaction.render.content import permitted


def openai_choice(sent: Sequence[WireBlock], allowed: Collection[str]) -> str | WireBlock | None:
    """Return the `tool_choice` of chat completions: the allowed tools among those sent.

    None if all of them are allowed; "none" if none is.
    """
    names = [str(tool["function"]["name"]) for tool in sent]
    free = {permitted(name, DIALECT.names) for name in allowed}
    kept = [name for name in names if name in free]
    if len(kept) == len(names):
        return None
    if not kept:
        return "none"
    tools = [{"function": {"name": name}, "type": "function"} for name in kept]
    return {"allowed_tools": {"mode": "auto", "tools": tools}, "type": "allowed_tools"}


def anthropic_choice(sent: Sequence[WireBlock], allowed: Collection[str]) -> dict[str, Any] | None:
    """Return the `tool_choice` of the Messages API: none if nothing is allowed.

    It has no list of allowed tools, so a partial mask is stated in words.
    """
    return {"type": "none"} if sent and not allowed else None


def words(allowed: Sequence[str], state: str) -> str:
    """State the allowed tools in words, at the end of a context whose provider has no mask."""
    said = f' state="{escape(state)}"' if state else ""
    listed = ", ".join(escape(name, quote=False) for name in allowed) or "none"
    return f"<allowed_tools{said}>Of the tools, use only these now: {listed}</allowed_tools>"
