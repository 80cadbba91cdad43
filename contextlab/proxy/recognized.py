"""Which session a model call belongs to: by its headers, else by how its history begins."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

SESSION_HEADERS = (
    "x-contextlab-session",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "thread-id",
    "conversation_id",
    "x-opencode-session",
    "x-session-affinity",
    "x-session-id",
)
"""Headers with an id of the session: ours, then those of agents as they send them."""

_IN_METADATA = re.compile(r"_session_([0-9A-Za-z-]{8,})$")
_AGENTS = {"claude-cli": "claude-code", "codex_cli_rs": "codex", "codex_exec": "codex"}


class Recognized(NamedTuple):
    """The external id of a session, its agent, and its parent's external id if it is a sub-agent.

    `title` is how its task begins. A side call, such as one that makes a title, is no step of its
    session.
    """

    session: str
    agent: str
    parent: str = ""
    title: str = ""
    is_side_call: bool = False


def recognized(headers: Mapping[str, str], body: Mapping[str, Any]) -> Recognized:
    """Recognize the session of a call. `headers` have lower-case names."""
    agent, title = _agent(headers.get("user-agent", "")), _title(body)
    session = _session(headers, body)
    if not session:
        return Recognized(f"{agent}-{_beginning(body)}", agent, "", title)
    part = headers.get("x-claude-code-agent-id", "")
    if part:
        above = headers.get("x-claude-code-parent-agent-id", "")
        parent = f"{session}/{above}" if above else session
        return Recognized(f"{session}/{part}", agent, parent, title)
    # Claude Code's own calls list tools; those for titles and topics do not.
    side = agent == "claude-code" and not body.get("tools")
    return Recognized(session, agent, "", title, side)


def _session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    for name in SESSION_HEADERS:
        if value := headers.get(name, "").strip()[:200]:
            return value
    metadata = body.get("metadata")
    given = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(given, str):
        return ""
    if found := _IN_METADATA.search(given):
        return found[1]
    try:
        named = json.loads(given)
    except ValueError:
        return ""
    return str(named.get("session_id") or "")[:200] if isinstance(named, dict) else ""


def _agent(user_agent: str) -> str:
    product = user_agent.partition("/")[0].strip().lower().replace(" ", "-")[:60]
    return _AGENTS.get(product, product) or "agent"


def _title(body: Mapping[str, Any]) -> str:
    """The first text of the first message that is not an insertion of the agent's program."""
    messages = body.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    content = first.get("content") if isinstance(first, dict) else None
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [str(block.get("text") or "").strip() for block in blocks if isinstance(block, dict)]
    return next((text[:200] for text in texts if text and not text.startswith("<")), "")


def _beginning(body: Mapping[str, Any]) -> str:
    """A name for the system prompt and first message, which stay as a history grows."""
    messages = body.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    begin = [_unmarked(body.get("system")), _unmarked(first)]
    return hashlib.sha256(json.dumps(begin, sort_keys=True).encode()).hexdigest()[:16]


def _unmarked(value: Any) -> Any:
    """A value without cache breakpoints, which move."""
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value
