"""Which models read text alone, and a context's blocks as such a model takes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from compaction.wire import WireBlock, text_of, type_of

TEXT_ONLY = re.compile(
    r"(?:^|[/.:])(?:"
    r"gpt-3\.5|o1-mini|o1-preview|o3-mini|gpt-oss"
    r"|claude-2|claude-instant"
    r"|deepseek-(?:coder|r1|v3|v4-pro)"
    r"|codestral|qwen[\d.]*-coder"
    r"|glm-4[.p][56](?!v)|kimi-k2(?![.p])"
    r"|llama-?v?3[.p][13]-"
    r")",
    re.IGNORECASE,
)
"""Names of models without image input (docs/sources.md, Models that read text alone). Aliases that
lead to newer models with it are not named; what is not named is taken to read images."""


def reads_images(model: str, text_only: Collection[str] = ()) -> bool:
    """Whether a model takes images; `text_only` are names that a team knows better about."""
    return model not in text_only and TEXT_ONLY.search(model) is None


def readable(
    model: str, wires: Mapping[str, WireBlock], text_only: Collection[str] = ()
) -> Mapping[str, WireBlock]:
    """Blocks by id as a model takes them: for one that reads text alone, a word in brackets stands
    in place of each image. What is given is not changed, and given back where nothing differs."""
    if reads_images(model, text_only):
        return wires
    return {name: _without_images(wire) for name, wire in wires.items()}


def _without_images(wire: WireBlock) -> WireBlock:
    if type_of(wire) == "image":
        return {"type": "text", "text": text_of(wire)}
    content: Any = wire.get("content")
    if type_of(wire) != "tool_result" or not isinstance(content, list):
        return wire
    parts = [_without_images(part) if isinstance(part, dict) else part for part in content]
    return wire if parts == content else {**wire, "content": parts}
