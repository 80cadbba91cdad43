"""Which session a model call belongs to: by its headers, else by how its history begins."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import Any, NamedTuple

from contextlab.client.shown import blocks_of
from contextlab.proxy.inserted import INSERTED

SESSION_HEADERS = (
    "x-contextlab-session",
    "x-claude-code-session-id",
    "thread-id",
    "session-id",
    "session_id",
    "conversation_id",
    "x-opencode-session",
    "x-session-affinity",
    "x-session-id",
)
"""Headers with an id of the session: ours, then those of agents as they send them."""

PARENT_HEADERS = ("x-codex-parent-thread-id", "x-parent-session-id")
_OF_THE_TASK = ("turn", "subagent_turn", "compact")
"""Kinds of Codex's requests that are steps of a session."""

SUMMARIES = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
)
"""How the summaries of Claude Code and Codex begin, which they put in place of a history."""

_IN_METADATA = re.compile(r"_session_([0-9A-Za-z-]{8,})$")
_AGENTS = {
    "claude-cli": "claude-code",
    "codex_cli_rs": "codex",
    "codex_exec": "codex",
    "geminicli": "gemini-cli",
    "geminicli-tui": "gemini-cli",
    "qwencode": "qwen-code",
}
_ASIDE_BY_AIDER = (
    "You are an expert software engineer that generates concise, one-line Git commit messages",
    "*Briefly* summarize this partial conversation about programming.",
)
"""How the system prompts of aider's side calls begin."""
_ASIDE = {"aider": _ASIDE_BY_AIDER, "gemini-cli": ("You are a specialized Task Routing AI.",)}
"""How the system prompts of side calls begin, by agents that send no id of a session."""
_BY_INTRODUCTION = {"You are Cline,": "cline"} | dict.fromkeys(_ASIDE_BY_AIDER, "aider")
"""Agents that send only the name of an SDK, by how their system prompt begins."""


class Recognized(NamedTuple):
    """The external id of a session, its agent, and its parent's external id if it is a sub-agent.

    `title` is how its task begins. A side call, such as one that makes a title, is no step of its
    session: side calls have one of their own, as its child. Those of agents that send no id of a
    session have no parent here.
    """

    session: str
    agent: str
    parent: str = ""
    title: str = ""
    is_side_call: bool = False


def recognized(headers: Mapping[str, str], body: Mapping[str, Any]) -> Recognized:
    """Recognize the session of a call. `headers` have lower-case names; `body` is a request as for
    the Messages API."""
    agent, title = _agent(headers, body), _title(body)
    session = _session(headers, body)
    if not session:
        named = f"{agent}-{_beginning(body)}"
        if agent in _ASIDE and _is_side_call(headers, body, agent):
            return Recognized(named, agent, "", "Side calls", True)
        return Recognized(named, agent, "", title)
    if _is_side_call(headers, body, agent):
        return Recognized(f"{session}/side-calls", agent, session, "Side calls", True)
    if part := headers.get("x-claude-code-agent-id", ""):
        above = headers.get("x-claude-code-parent-agent-id", "")
        parent = f"{session}/{above}" if above else session
        return Recognized(f"{session}/{part}", agent, parent, title)
    parent = next((headers[name] for name in PARENT_HEADERS if headers.get(name)), "")
    return Recognized(session, agent, "" if parent == session else parent[:200], title)


def with_summary(body: dict[str, Any]) -> dict[str, Any]:
    """A request in which the agent's own summary, if its history begins with one, is a message of
    its own, marked as a summary. What else its message says are messages beside it."""
    opening = _opening(_listed(body))
    marked = [part for message in opening for part in _parted(message)]
    if len(marked) == len(opening) and not any("kind" in one for one in marked):
        return body
    return {**body, "messages": [*marked, *body["messages"][len(opening) :]]}


def _parted(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if message.get("role") != "user" or not any(map(_is_summary, blocks)):
        yield message
        return
    for summary, part in groupby(blocks, _is_summary):
        kind = {"kind": "summary"} if summary else {}
        yield {**message, "content": [*part], **kind}


def _is_summary(block: Any) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(SUMMARIES)


def _is_side_call(headers: Mapping[str, str], body: Mapping[str, Any], agent: str) -> bool:
    """Whether an agent calls for itself: for a title, a commit message, a choice of the model, or
    what to remember."""
    if begins := _ASIDE.get(agent):
        return _system(body).lstrip().startswith(begins)
    if agent == "codex":
        try:
            kind = json.loads(headers.get("x-codex-turn-metadata", "")).get("request_kind")
        except (ValueError, AttributeError, RecursionError):
            return False
        return kind not in (None, *_OF_THE_TASK)
    # Those agents' own calls list tools.
    return agent in ("claude-code", "opencode") and not (
        body.get("tools") or headers.get("x-claude-code-agent-id")
    )


def _session(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    for name in SESSION_HEADERS:
        if value := headers.get(name, "").strip()[:200]:
            return value
    metadata = body.get("metadata")
    given = metadata.get("user_id") if isinstance(metadata, dict) else None
    if isinstance(given, str) and (found := _in_user_id(given)):
        return found
    key = body.get("prompt_cache_key")
    return key.strip()[:200] if isinstance(key, str) else ""


def _in_user_id(given: str) -> str:
    """Claude Code's id of a session in `metadata.user_id`."""
    if found := _IN_METADATA.search(given):
        return found[1]
    try:
        named = json.loads(given)
    except (ValueError, RecursionError):
        return ""
    return str(named.get("session_id") or "")[:200] if isinstance(named, dict) else ""


def _agent(headers: Mapping[str, str], body: Mapping[str, Any]) -> str:
    # Other agents insert messages too, such as their environment, but no replies.
    if any(map(_is_inserted_reply, _listed(body))):
        return "aider"
    product = headers.get("user-agent", "").partition("/")[0].strip().lower().replace(" ", "-")[:60]
    introduced = (name for said, name in _BY_INTRODUCTION.items() if _system(body).startswith(said))
    return next(introduced, _AGENTS.get(product, product)) or "agent"


def _system(body: Mapping[str, Any]) -> str:
    """The system prompt's text; empty if there is none."""
    prompts = (one.get("content") for one in _opening(_listed(body)) if one.get("role") == "system")
    said = blocks_of(body.get("system") or next(prompts, None))
    return "".join(str(one.get("text") or "") for one in said)


def _title(body: Mapping[str, Any]) -> str:
    """The first text by a person: not one that the agent's program inserted. A task that another
    agent gave has a name."""
    for message in _opening(_said(body)):
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"text": content}]
        if named := _task(blocks):
            return named
        said = [str(one.get("text") or "").strip() for one in blocks if isinstance(one, dict)]
        found = [text for text in said if text and not text.startswith(("<", "# AGENTS.md"))]
        if found and message.get("role") == "user":
            return _unquoted(found[0])[:200]
    return ""


def _unquoted(text: str) -> str:
    """A text without the quotation marks that `opencode run` puts around it."""
    within = text[1:-1]
    return within if text == f'"{within}"' and '"' not in within else text


def _task(blocks: list[Any]) -> str:
    """The name of the task in a message of Codex's between agents; empty if it is none."""
    item = blocks[0].get("item") if blocks and isinstance(blocks[0], dict) else None
    recipient = item.get("recipient") if isinstance(item, dict) else None
    return recipient.rpartition("/")[2][:200] if isinstance(recipient, str) else ""


def _said(body: Mapping[str, Any]) -> list[Any]:
    """The messages that aider did not insert."""
    return [one for one in _listed(body) if not _is_inserted(one)]


def _is_inserted(message: Any) -> bool:
    return isinstance(message, dict) and message.get("kind") == INSERTED


def _is_inserted_reply(message: Any) -> bool:
    return _is_inserted(message) and message.get("role") == "assistant"


def _listed(body: Mapping[str, Any]) -> list[Any]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def _opening(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """The messages before the first reply."""
    said = takewhile(lambda one: isinstance(one, dict) and one.get("role") != "assistant", messages)
    return list(said)


def _beginning(body: Mapping[str, Any]) -> str:
    """A name for the system prompt and first message, which stay as a history grows."""
    opening = _opening(_said(body))
    first = next((at for at, one in enumerate(opening, 1) if one.get("role") == "user"), 1)
    begin = [_unmarked(body.get("system")), _unmarked(opening[:first])]
    return hashlib.sha256(json.dumps(begin, sort_keys=True).encode()).hexdigest()[:16]


def _unmarked(value: Any) -> Any:
    """A value without cache breakpoints, which move."""
    if isinstance(value, dict):
        return {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
    return [_unmarked(one) for one in value] if isinstance(value, list) else value
