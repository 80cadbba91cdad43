"""Preserved thinking: which thinking blocks a provider's newer models refuse, as documented.

A thinking block is valid while the system prompt, the tools and every message before it are what
they were when it was made, apart from thinking and cache breakpoints; and while the thinking block
that the request has before it, if any, is the one that was before it then.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

MODELS = (
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
)
BETA = "thinking-binding-controls-2026-08-01"
THINKING = ("thinking", "redacted_thinking")


@dataclass
class Bindings:
    """What each thinking block was made after, by its signature."""

    made: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    def note(self, body: Json, content: list[Json]) -> None:
        """Remember what the thinking of an answer was made after."""
        seen = _Seen(body)
        for message in body["messages"]:
            seen.message(message)
        seen.open({"role": "assistant"})
        for block in content:
            if block["type"] in THINKING:
                self.made.setdefault(_key(block), (seen.digest(), seen.thought))
            seen.block(block)

    def invalid(self, body: Json) -> list[str]:
        """Paths of the thinking blocks of a request that its model would not accept."""
        if not str(body.get("model")).startswith(MODELS):
            return []
        seen, found = _Seen(body), []
        for at, message in enumerate(body["messages"]):
            seen.open(message)
            for index, block in enumerate(_blocks(message)):
                if block["type"] in THINKING and _key(block) in self.made:
                    before, previous = self.made[_key(block)]
                    gap = seen.thought is not None and seen.thought != previous
                    if found or gap or before != seen.digest():
                        found.append(f"messages.{at}.content.{index}")
                seen.block(block)
        return found


class _Seen:
    """What was read of a request so far."""

    def __init__(self, body: Json) -> None:
        self._hash = hashlib.sha256()
        self._add([body.get("system") or [], body.get("tools") or []])
        self._role = ""
        self.thought: str | None = None

    def message(self, message: Json) -> None:
        self.open(message)
        for block in _blocks(message):
            self.block(block)

    def open(self, message: Json) -> None:
        """Begin a message; the provider merges those of one role."""
        role = str(message["role"])
        if role != self._role or message.get("clear_at"):
            self._add([role, message.get("clear_at")])
        self._role = role

    def block(self, block: Json) -> None:
        if block["type"] in THINKING:
            self.thought = _key(block)
        else:
            self._add(block)

    def digest(self) -> str:
        return self._hash.hexdigest()

    def _add(self, value: Any) -> None:
        self._hash.update(json.dumps(_bare(value), sort_keys=True).encode())


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _key(block: Json) -> str:
    return str(block.get("signature") or block.get("data"))


def _bare(value: Any) -> Any:
    """A value without its cache breakpoints."""
    if isinstance(value, dict):
        return {name: _bare(one) for name, one in value.items() if name != "cache_control"}
    return [_bare(one) for one in value] if isinstance(value, list) else value
