"""What a request with a context must have besides it, for the provider to accept it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.prices import binding, system_messages


def needs_of(model: str, body: Mapping[str, Any]) -> dict[str, object]:
    """Return `thinking` and `betas` of a context in Anthropic's form, if its model needs them."""
    cleared = any("clear_at" in message for message in body["messages"])
    betas = [system_messages.BETA] if cleared else []
    if not binding.binds_thinking(model):
        return {"betas": betas} if betas else {}
    # A safety net: what became invalid under us has left. The agent may have made calls without us.
    return {"thinking": binding.DROP, "betas": [binding.BETA, *betas]}


def one_turn_text(body: Mapping[str, Any]) -> str:
    """Return the system message for one turn that a context ends with; empty if there is none."""
    last = (body.get("messages") or [{}])[-1]
    return str(last["content"][0]["text"]) if "clear_at" in last else ""
