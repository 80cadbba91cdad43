"""Replies that an agent's program sends back: the same as the model's, though completed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from compaction.context.wire import WireBlock

_SAID = {
    "text": ("text",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name"),
}
"""What makes a block of a reply the same one, beside a call's input."""
_BESIDE = frozenset({"cache_control"})
_IN_FOLDER = re.compile(r"\Acd [^\n;|&]+ && (?=\S)")


def is_resent(said: Sequence[WireBlock], sent: Sequence[WireBlock]) -> bool:
    """Whether a message that was sent is a reply as the model said it, block by block.

    Programs complete the input of a call with defaults and put its fields in the order of the
    tool's schema. The id says that it is the same call, unless a value in its input is another one.
    """
    return len(said) == len(sent) and all(map(_is_same, said, sent))


def _is_same(said: WireBlock, sent: WireBlock) -> bool:
    name = said.get("type")
    if name != sent.get("type"):
        return False
    fields = _SAID.get(name) if isinstance(name, str) else None
    if fields is None or (name == "tool_use" and not said.get("id")):
        return _bare(said) == _bare(sent)
    is_same = all(said.get(one) == sent.get(one) for one in fields)
    return is_same and (name != "tool_use" or completes(sent.get("input"), said.get("input")))


def completes(sent: Any, said: Any) -> bool:
    """Whether a value has all that another one says, whatever else its objects have."""
    if isinstance(said, dict) and isinstance(sent, dict):
        given = ((name, one) for name, one in said.items() if one is not None)
        return all(name in sent and completes(sent[name], one) for name, one in given)
    if isinstance(said, list) and isinstance(sent, list):
        return len(said) == len(sent) and all(map(completes, sent, said))
    if isinstance(said, str):
        return _is_same_text(sent, said)
    # In Python, True equals 1.
    return bool(said == sent) and isinstance(said, bool) == isinstance(sent, bool)


def _is_same_text(sent: Any, said: str) -> bool:
    """Whether a text is the same, as Claude Code tidies it: without spaces at the ends of lines and
    a command's change to the folder that it runs in anyway, and numbers as such."""
    if not isinstance(sent, str):
        return isinstance(sent, bool | int | float) and said == json.dumps(sent)
    return sent == said or _trimmed(sent) in (_trimmed(said), _trimmed(_IN_FOLDER.sub("", said, 1)))


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _bare(block: WireBlock) -> WireBlock:
    """A block without what may differ between sends."""
    return {k: v for k, v in block.items() if v is not None and k not in _BESIDE}
