"""Replies as an agent saw them, and what the model had said: it also read back what stubs name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ShownReply:
    """A reply as the agent saw it, the messages that the model knows for it, and
    results that the agent lacks."""

    content: list[Message]
    messages: list[Message]
    results: list[Message]


class ShownReplies:
    """Replies that differ from what the model said, by their place in the agent's history."""

    def __init__(self) -> None:
        self._replies: dict[int, ShownReply] = {}

    def add(self, place: int, shown: ShownReply) -> None:
        """Remember a reply; later ones are gone, since the agent went back."""
        self._replies = {at: one for at, one in self._replies.items() if at < place}
        self._replies[place] = shown

    def restored(self, messages: Sequence[Message]) -> list[Message]:
        """The agent's history as the model knows it: with all calls of `read_back`, and results."""
        made: list[Message] = []
        results: list[Message] = []
        for place, message in enumerate(messages):
            if results and message.get("role") == "user":
                message = {**message, "content": [*results, *blocks_of(message["content"])]}
            results = []
            known = self._replies.get(place)
            if known is not None and _said(known.content) == _said(message.get("content")):
                made += known.messages
                results = known.results
            else:
                made.append(message)
        return made


def _said(content: Any) -> tuple[str, list[Any]]:
    """What an agent keeps of a reply, however it stores it: the text, and ids of calls."""
    blocks = blocks_of(content)
    text = "".join(str(block.get("text") or "") for block in blocks)
    return text.strip(), [block.get("id") for block in blocks if block.get("type") == "tool_use"]


def blocks_of(content: Any) -> list[Message]:
    """A message's content as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content or () if isinstance(block, dict)]
