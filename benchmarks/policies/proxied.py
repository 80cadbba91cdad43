"""Managed requests for a harness that replays recorded sessions: the functions that it calls.

`benchmarks/policies/peers.py` starts the server and the harness, and has the command. A function
takes the request that an agent sent and a dict that lasts for the session, with its `id`, and
returns the request to send instead. It does what `wrap()` does: the history is appended, the next
context is what goes out, and the usage that the harness's provider answers is reported with the
next append. CONTEXTLAB_URL and CONTEXTLAB_TOKEN say where the server is.

Imports nothing but the client, so that the harness can run in an environment of its own.
"""

from __future__ import annotations

import sys
from typing import Any

from contextlab.client import ContextLab, Session

Request = dict[str, Any]

BINDS = "claude-opus-5-5"
"""A model that refuses thinking after earlier messages have changed (prices/binding.py)."""


def balanced(request: Request, session: dict[str, Any]) -> Request:
    """The request under `balanced`, for the recorded model."""
    return _managed(request, session, "balanced", request["model"])


def balanced_lean(request: Request, session: dict[str, Any]) -> Request:
    """The request under `balanced-lean`, for the recorded model."""
    return _managed(request, session, "balanced-lean", request["model"])


def balanced_binding(request: Request, session: dict[str, Any]) -> Request:
    """The request under `balanced`, as if the model bound thinking to what was before it."""
    return _managed(request, session, "balanced", BINDS)


def balanced_lean_binding(request: Request, session: dict[str, Any]) -> Request:
    """The request under `balanced-lean`, as if the model bound thinking."""
    return _managed(request, session, "balanced-lean", BINDS)


def _managed(request: Request, session: dict[str, Any], policy: str, model: str) -> Request:
    agent = session.get("agent")
    if agent is None:
        fields = {"agent": "replay", "model": model, "policy": policy}
        agent = session["agent"] = ContextLab().session(
            f"{session['id']}-{policy}-{model}", **fields
        )
        assert isinstance(agent, Session)
    given = {name: _unmarked(request[name]) for name in ("messages", "tools", "system")}
    replies = [message for message in given["messages"] if message["role"] == "assistant"]
    report = session.get("report", {}) if replies else {}
    if report:
        # As if stored at once: a call that is reported with the next one seems to be as late.
        replies[-1]["at"] = int(session["asked"])
    context = agent.step(history=True, **given, **report)
    sent = {**request, "tools": [], **context.request, "model": request["model"]}
    session["asked"] = session["at"] or 0
    session["report"] = {"usage": _usage(sent, session), "context_id": context.id}
    return sent


def _usage(sent: Request, session: dict[str, Any]) -> dict[str, int]:
    """What the harness's provider will answer, by the same rules."""
    harness: Any = sys.modules["__main__"]
    cache = session.setdefault("cache", harness.Cache())
    found, marks = harness.units_of(sent)
    use = cache.use(found, marks, harness.head_of(sent), session["at"])
    return {
        "input_tokens": use["fresh"],
        "cache_read_input_tokens": use["read"],
        "cache_creation_input_tokens": use["write"],
    }


def _unmarked(value: Any) -> Any:
    """A value without the client's own breakpoints."""
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value
