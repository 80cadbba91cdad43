"""A second reader of logs, to verify the importers: it knows nothing of them, and rebuilds the
context of every model call from the raw log, in the simplest way that the format allows.

Pure: bytes in, values out. Where an importer keeps one context and edits it, a reader here prefers
to begin again at each call: it walks up a tree of parents, or takes all that precedes.
"""

from __future__ import annotations

from collections.abc import Callable

from sessions.second_reader import arrays, claude_code, codex, documents, pi
from sessions.second_reader.reread import Reread

READERS: dict[str, Callable[[bytes], list[Reread]]] = {
    "anthropic-messages": arrays.anthropic,
    "claude-code": claude_code.read,
    "codex-rollout": codex.read,
    "gemini-cli": documents.gemini,
    "mini-swe-agent": arrays.mini_swe,
    "openai-messages": arrays.openai,
    "opencode": documents.opencode,
    "pi": pi.read,
    "swe-agent-traj": arrays.swe,
    "tau-bench": arrays.tau,
    "who-and-when": arrays.who_and_when,
}
"""By the name of the format; other formats have no second reader."""
