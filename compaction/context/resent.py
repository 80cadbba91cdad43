"""Replies that an agent's program sends back: the same as the model's, though changed in form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
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
_IN_FOLDER = re.compile(r"\Acd ([^\n;|&]+) && (?=\S)")
_FOLDER = re.compile(
    r"^[^\w\n]{0,8}(?:primary )?working directory: {0,4}([^\s][^\n]*)$", re.I | re.M
)


def folders_in(blocks: Iterable[WireBlock]) -> frozenset[str]:
    """The working folders that a system prompt states, as Claude Code's does; often none."""
    texts = [text for one in blocks if isinstance(text := one.get("text"), str)]
    return frozenset(_bare_path(path) for text in texts for path in _FOLDER.findall(text))


def _bare_path(path: str) -> str:
    return path.strip(" \t\r\"'`").rstrip("/") or "/"


def is_resent(
    said: Sequence[WireBlock], sent: Sequence[WireBlock], folders: frozenset[str] = frozenset()
) -> bool:
    """Whether a message that was sent is a reply as the model said it, block by block.

    Programs complete the input of a call with defaults and put its fields in the order of the
    tool's schema. The id says that it is the same call, unless a value in its input is another one.
    They join and trim texts, and leave out reasoning, which only Anthropic signs and checks.
    Of a command they leave out the change to one of the working `folders`; to any if none is known.
    """
    said, sent = _kept(said), _kept(sent)
    return len(said) == len(sent) and all(
        _is_same(one, other, folders) for one, other in zip(said, sent, strict=True)
    )


def _kept(blocks: Sequence[WireBlock]) -> list[WireBlock]:
    """A reply without what programs leave out of it, and with adjacent texts as one."""
    made: list[WireBlock] = []
    rest = (one for one in blocks if one.get("type") != "thinking" or one.get("signature"))
    for is_text, group in groupby(rest, lambda one: one.get("type") == "text"):
        if not is_text:
            made += group
        elif text := "".join(str(one.get("text") or "") for one in group).strip():
            made.append({"type": "text", "text": text})
    return made


def _is_same(said: WireBlock, sent: WireBlock, folders: frozenset[str]) -> bool:
    name = said.get("type")
    if name != sent.get("type"):
        return False
    fields = _SAID.get(name) if isinstance(name, str) else None
    if fields is None or (name == "tool_use" and not said.get("id")):
        return _bare(said) == _bare(sent)
    is_same = all(said.get(one) == sent.get(one) for one in fields)
    return is_same and (
        name != "tool_use" or completes(sent.get("input"), said.get("input"), folders)
    )


def completes(sent: Any, said: Any, folders: frozenset[str] = frozenset()) -> bool:
    """Whether a value has all that another one says, whatever else its objects have."""
    if isinstance(said, dict) and isinstance(sent, dict):
        given = ((name, one) for name, one in said.items() if one is not None)
        return all(name in sent and completes(sent[name], one, folders) for name, one in given)
    if isinstance(said, list) and isinstance(sent, list):
        return len(said) == len(sent) and all(
            completes(one, other, folders) for one, other in zip(sent, said, strict=True)
        )
    if isinstance(said, str):
        return _is_same_text(sent, said, folders)
    # In Python, True equals 1.
    return bool(said == sent) and isinstance(said, bool) == isinstance(sent, bool)


def _is_same_text(sent: Any, said: str, folders: frozenset[str]) -> bool:
    """Whether a text is the same, as Claude Code tidies it: without spaces at the ends of lines and
    a command's change to the folder that it runs in anyway, and numbers as such."""
    if not isinstance(sent, str):
        return isinstance(sent, bool | int | float) and said == json.dumps(sent)
    if sent == said or _trimmed(sent) == _trimmed(said):
        return True
    found = _IN_FOLDER.match(said)
    if found is None or (folders and _bare_path(found[1]) not in folders):
        return False
    return _trimmed(sent) == _trimmed(said[found.end() :])


def _trimmed(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _bare(block: WireBlock) -> WireBlock:
    """A block without what may differ between sends."""
    return {k: v for k, v in block.items() if v is not None and k not in _BESIDE}
