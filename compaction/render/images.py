"""Which models accept images, and contexts for those that do not."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from compaction.context.wire import WireBlock, text_of, type_of
from compaction.render.content import WireOf

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
"""Names of models without image input (our list).

Aliases of newer models that read images are left out. Unlisted models count as reading images."""


def reads_images(model: str, text_only: Collection[str] = ()) -> bool:
    """Return whether a model accepts images; `text_only` lists models known not to."""
    return model not in text_only and TEXT_ONLY.search(model) is None


def readable(model: str, wire_of: WireOf, text_only: Collection[str] = ()) -> WireOf:
    """Return blocks in the form a model accepts: for a text-only model, each image becomes a word
    in brackets."""
    if reads_images(model, text_only):
        return wire_of
    return lambda block: _without_images(wire_of(block))


def _without_images(wire: WireBlock) -> WireBlock:
    if type_of(wire) == "image":
        return {"type": "text", "text": text_of(wire)}
    content: Any = wire.get("content")
    if type_of(wire) != "tool_result" or not isinstance(content, list):
        return wire
    parts = [_without_images(part) if isinstance(part, dict) else part for part in content]
    return wire if parts == content else {**wire, "content": parts}
