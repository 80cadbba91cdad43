"""Find what breaks a cached prefix: the first difference between two consecutive requests.

A prefix is read from the cache only if all its bytes are equal, in the order tools, system,
messages. Some settings count as a change of a layer, whatever its bytes (docs/record/cache.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from compaction.cache.prefix_pieces import (
    Json,
    Layer,
    PromptPiece,
    ends_of,
    listed,
    pieces_of,
    size,
)
from compaction.cache.uses import Cause
from compaction.cache.volatile import Kind, kind_of_difference

_CHARS_PER_10_TOKENS = 29
"""Characters of ten tokens in recorded agent sessions (docs/sources.md, Token ratios)."""

_EXCERPT = 80
"""Characters of each side that a finding shows (our choice)."""


MESSAGE_SETTINGS = ("tool_choice", "parallel_tool_calls", "thinking", "effort", "reasoning",
             "reasoning_effort", "output_config", "response_format", "text")  # fmt: skip
SYSTEM_SETTINGS = ("speed", "context_management")
"""Request fields that are part of the cache key of the messages, and of the system prompt too."""

HOW: dict[Kind, str] = {
    "model": "Each model has a cache of its own: switch at a task boundary.",
    "setting": "Keep this setting constant within a session.",
    "images": "Always keep an image in the prompt, or never send one.",
    "tool_added": "List all tools from the start, or load new ones with a tool search.",
    "tool_removed": "Keep the tool in the list and say in a message not to use it.",
    "tool_order": "Sort the tools, for example by name.",
    "tool_changed": "Keep each tool's description and schema constant within a session.",
    "clock": "Move the time from the prefix to the newest message.",
    "identifier": "Move the identifier from the prefix to the newest message.",
    "counter": "Move the counter from the prefix to the newest message.",
    "key_order": "Serialize objects with a fixed key order, for example sorted.",
    "whitespace": "Serialize the same text with the same whitespace.",
    "system_changed": "Keep the system prompt constant: put what changes into a message.",
    "message_edited": "Append instead of editing, or make edits in batches.",
    "message_removed": "Everything after it is paid again: remove in batches.",
}
"""How to fix each kind."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference that ends the common prefix of two requests.

    `offset` is the first byte of the canonical form that cannot be read, `path` a JSON pointer into
    the current request (into the previous one for something removed), `tokens` an estimate of what
    follows and has to be paid again. `before` and `now` show the place.
    """

    kind: Kind
    layer: Layer
    path: str
    offset: int
    tokens: int
    before: str
    now: str

    @property
    def how(self) -> str:
        """How to fix it."""
        return HOW[self.kind]

    @property
    def cause(self) -> Cause:
        """The cause of a break due to this finding."""
        named: dict[Kind, Cause] = {"model": "model", "setting": "settings", "images": "images"}
        of_layer: dict[Layer, Cause] = {"tools": "tools", "system": "system", "messages": "edit"}
        return named.get(self.kind) or of_layer[self.layer]


class PrefixCheck(NamedTuple):
    """What prevents the previous request from being read from the cache, in prompt order.

    `sizes` are the bytes of the previous and the current prompt; 0 without a prompt.
    """

    sizes: tuple[int, int]
    findings: list[Finding]


def check(previous: Mapping[str, Json], current: Mapping[str, Json]) -> PrefixCheck:
    """Compare two requests, as they are sent to Anthropic's or OpenAI's API.

    Without findings, the current request only appends to the previous one. Linear in their bytes.
    """
    was, now = list(pieces_of(previous)), list(pieces_of(current))
    text = "".join(item.text for item in was)
    ends = ends_of(was)
    found = [*_beside(previous, current, ends), *_images(was, now, ends)]
    if (difference := _difference(was, now)) is not None:
        found.append(difference)
    found.sort(key=lambda one: one.offset)
    whole = text.encode("utf-8", "replace")
    findings = [_sized(one, whole) for one in found if one.offset < len(whole)]
    return PrefixCheck((len(whole), sum(size(item.text) for item in now)), findings)


def _sized(finding: Finding, whole: bytes) -> Finding:
    behind = len(whole[finding.offset :].decode("utf-8", "ignore"))
    tokens = behind * 10 // _CHARS_PER_10_TOKENS
    return Finding(
        finding.kind,
        finding.layer,
        finding.path,
        finding.offset,
        tokens,
        finding.before,
        finding.now,
    )


# Changes outside the prompt's bytes


def _beside(
    previous: Mapping[str, Json], current: Mapping[str, Json], ends: Mapping[Layer, int]
) -> Iterator[Finding]:
    layers: list[tuple[Kind, Layer, tuple[str, ...]]] = [
        ("model", "tools", ("model",)),
        ("setting", "system", SYSTEM_SETTINGS),
        ("setting", "messages", MESSAGE_SETTINGS),
    ]
    for kind, layer, names in layers:
        for name in names:
            was, now = previous.get(name), current.get(name)
            if was != now:
                yield Finding(kind, layer, f"/{name}", ends[layer], 0, _short(was), _short(now))


def _short(value: Json) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)[:_EXCERPT]


def _images(
    was: list[PromptPiece], now: list[PromptPiece], ends: Mapping[Layer, int]
) -> Iterator[Finding]:
    before, after = _first_image(was), _first_image(now)
    if (before is None) != (after is None):
        path = before or after or ""
        shown = ("image", "") if before else ("", "image")
        yield Finding("images", "messages", path, ends["messages"], 0, *shown)


def _first_image(items: list[PromptPiece]) -> str | None:
    return next((i.path for i in items if i.layer == "messages" and pictured(i.value)), None)


def pictured(value: Json) -> bool:
    """Return whether a block is or contains an image."""
    if not isinstance(value, dict):
        return False
    if value.get("type") in ("image", "image_url", "input_image"):
        return True
    return any(pictured(one) for one in listed(value.get("content")))


# The first difference of the bytes


def _difference(was: list[PromptPiece], now: list[PromptPiece]) -> Finding | None:
    offset = 0
    for place, before in enumerate(was):
        after = now[place] if place < len(now) else None
        if after is None or after.text != before.text or after.layer != before.layer:
            if after is None and before.layer == "messages":
                return None  # the current prompt is a prefix of the previous one
            return _named(before, after, offset, (was, now))
        offset += size(before.text)
    return None


def _named(
    before: PromptPiece,
    after: PromptPiece | None,
    offset: int,
    items: tuple[list[PromptPiece], list[PromptPiece]],
) -> Finding:
    was, now = items
    # A piece inserted before it ends the prefix at the end of the previous piece's layer.
    path = before.path if after is None else after.path
    layer = before.layer
    if after is not None and _rank(after.layer) < _rank(before.layer):
        layer = after.layer
    if layer == "tools" and (kind := _tools(was, now)) is not None:
        return Finding(kind, layer, path, offset, 0, _named_tool(before), _named_tool(after))
    if after is None or after.layer != before.layer:
        gone: Kind = "message_removed" if layer == "messages" else "system_changed"
        shown = before.text[:_EXCERPT], after.text[:_EXCERPT] if after else ""
        return Finding(gone, layer, path, offset, 0, *shown)
    at = _common(before.text, after.text)
    kind = kind_of_difference(before, after, at)
    start = max(at - _EXCERPT // 2, 0)
    return Finding(
        kind,
        layer,
        path,
        offset + size(before.text[:at]),
        0,
        before.text[start : start + _EXCERPT],
        after.text[start : start + _EXCERPT],
    )


def _rank(layer: Layer) -> int:
    return ("tools", "system", "messages").index(layer)


def _tools(was: list[PromptPiece], now: list[PromptPiece]) -> Kind | None:
    """Return how two tool lists differ, if their names do."""
    before, after = ([_name(i.value) for i in side if i.layer == "tools"] for side in (was, now))
    if before == after:
        return None
    if sorted(before) == sorted(after):
        return "tool_order"
    return "tool_removed" if set(before) - set(after) else "tool_added"


def _name(tool: Json) -> str:
    given = tool if isinstance(tool, dict) else {}
    inner = given.get("function")
    name = inner.get("name") if isinstance(inner, dict) else given.get("name")
    return name if isinstance(name, str) else json.dumps(tool, sort_keys=True)[:_EXCERPT]


def _named_tool(item: PromptPiece | None) -> str:
    return _name(item.value)[:_EXCERPT] if item is not None and item.layer == "tools" else ""


def _common(before: str, after: str) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[:middle] == after[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
