"""A second reader of logs, to verify the importers: it knows nothing of them, and rebuilds the
context of every model call from the raw log, in the simplest way that the format allows.

Pure: bytes in, values out. Where an importer keeps one context and edits it, a reader here prefers
to begin again at each call: it walks up a tree of parents, or takes all that precedes.
"""

from __future__ import annotations

from collections.abc import Callable

from sessions.second_reader import (
    aider,
    arrays,
    chats,
    claude_code,
    cline,
    codex,
    copilot_cli,
    documents,
    inspect_logs,
    kimi,
    langgraph,
    openhands,
    pi,
    qwen_code,
    threads,
    traces,
)
from sessions.second_reader.reread import Reread

READERS: dict[str, Callable[[bytes], list[Reread]]] = {
    "aider": aider.read,
    "amp": threads.amp,
    "anthropic-messages": arrays.anthropic,
    "chat-jsonl": chats.read,
    "claude-code": claude_code.read,
    "claude-stream-json": chats.stream,
    "cline": cline.read,
    "codex-rollout": codex.read,
    "copilot-cli": copilot_cli.read,
    "cursor": threads.cursor,
    "gemini-cli": documents.gemini,
    "goose": threads.goose,
    "inspect-log": inspect_logs.read,
    "kimi": kimi.read,
    "langfuse-trace": traces.langfuse,
    "langgraph-thread": langgraph.read,
    "mini-swe-agent": arrays.mini_swe,
    "openai-messages": arrays.openai,
    "opencode": documents.opencode,
    "openhands-events": openhands.events,
    "openhands-output": openhands.results,
    "otlp-traces": traces.otlp,
    "pi": pi.read,
    "qwen-code": qwen_code.read,
    "swe-agent-traj": arrays.swe,
    "tau-bench": arrays.tau,
    "who-and-when": arrays.who_and_when,
}
"""By the name of the format; other formats have no second reader."""
