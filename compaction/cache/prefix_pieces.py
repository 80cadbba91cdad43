"""Split a request into the pieces of a cached prefix: tools, system, messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Json = Any
Layer = Literal["tools", "system", "messages"]

_DEPTH = 64
"""Cache marks in JSON nested deeper than this are kept."""


class PromptPiece(NamedTuple):
    """A piece of the prompt: its layer, JSON pointer, value, and text in canonical form."""

    layer: Layer
    path: str
    value: Json
    text: str


def pieces_of(request: Mapping[str, Json], *, bare: bool = True) -> Iterator[PromptPiece]:
    """Yield the pieces in prompt order; forms that the API does not accept are skipped.

    Cache marks are removed if `bare`.
    """
    for index, tool in enumerate(listed(request.get("tools"))):
        yield _item("tools", f"/tools/{index}", tool, bare)
    system = request.get("system")
    if isinstance(system, list):
        for index, block in enumerate(system):
            yield _item("system", f"/system/{index}", block, bare)
    elif system is not None:
        yield _item("system", "/system", system, bare)
    for index, message in enumerate(listed(request.get("messages"))):
        yield from _message(f"/messages/{index}", message, bare)


def _message(path: str, message: Json, bare: bool) -> Iterator[PromptPiece]:
    if not isinstance(message, dict):
        yield _item("messages", path, message, bare)
        return
    layer: Layer = "system" if message.get("role") in ("system", "developer") else "messages"
    content = message.get("content")
    rest = {key: value for key, value in message.items() if key != "content"}
    yield _item(layer, path, rest, bare)
    if isinstance(content, list):
        for index, block in enumerate(content):
            yield _item(layer, f"{path}/content/{index}", block, bare)
    elif content is not None:
        yield _item(layer, f"{path}/content", content, bare)


def listed(value: Json) -> list[Json]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def _item(layer: Layer, path: str, value: Json, bare: bool) -> PromptPiece:
    kept = _unmarked(value) if bare else value
    return PromptPiece(
        layer, path, kept, json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    )


def _unmarked(value: Json, depth: int = 0) -> Json:
    """Return a value without its cache marks, which are not part of the cached bytes."""
    if depth < _DEPTH and isinstance(value, dict):
        kept = ((key, one) for key, one in value.items() if key != "cache_control")
        return {key: _unmarked(one, depth + 1) for key, one in kept}
    if depth < _DEPTH and isinstance(value, list):
        return [_unmarked(one, depth + 1) for one in value]
    return value


def size(text: str) -> int:
    """Return the bytes of a text."""
    return len(text.encode("utf-8", "replace"))


def ends_of(items: list[PromptPiece]) -> dict[Layer, int]:
    """Return the bytes before the end of each layer."""
    sizes: dict[Layer, int] = {"tools": 0, "system": 0, "messages": 0}
    for item in items:
        sizes[item.layer] += size(item.text)
    return {"tools": 0, "system": sizes["tools"], "messages": sizes["tools"] + sizes["system"]}


def marked(request: Mapping[str, Json]) -> set[str]:
    """Return the pointers of the pieces that carry a cache mark."""
    found = set()
    for piece in pieces_of(request, bare=False):
        if isinstance(piece.value, dict) and piece.value.get("cache_control"):
            found.add(piece.path)
    return found
