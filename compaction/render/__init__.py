"""Render a context for a provider, deterministically: equal blocks give equal bytes.

Objects that we create have alphabetical keys; inputs and schemas of tools keep their original
order. Nothing here depends on a clock or on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compaction.context.blocks import Block, Ending
from compaction.render.chat import openai
from compaction.render.content import WireOf, text_part
from compaction.render.gemini import gemini
from compaction.render.messages_api import anthropic, anthropic_from
from compaction.render.pairs import pairs
from compaction.render.prefix import Prefix
from compaction.render.responses import responses

__all__ = [
    "Prefix",
    "WireOf",
    "anthropic",
    "anthropic_from",
    "as_blocks",
    "gemini",
    "openai",
    "pairs",
    "responses",
]


def as_blocks(
    blocks: Iterable[Block], wire_of: WireOf, ending: Ending | None = None
) -> dict[str, Any]:
    """Return {blocks, notes}: the blocks in order and unchanged, for agents that render themselves.

    `message` is the number of the message that a block belongs to (for a replacement, that of its
    first target); `refs` are the originals that a replacement's text references. The recitation
    comes last, as part of the message before it.
    """
    ending = ending or Ending()
    listed: list[dict[str, Any]] = [
        {
            "block": wire_of(block),
            "id": block.id,
            "kind": block.kind,
            "message": block.message,
            "refs": list(block.refs),
            "replaces": block.replaces,
            "response": block.call,
            "role": block.role,
            "tokens": block.tokens,
        }
        for block in blocks
    ]
    if ending.whole and listed:
        listed.append(_recited(ending, listed[-1]["message"]))
    return {"blocks": listed, "notes": []}


def _recited(ending: Ending, message: int) -> dict[str, Any]:
    return {
        "block": text_part(ending.whole),
        "id": "recitation",
        "kind": "recitation",
        "message": message,
        "refs": [],
        "replaces": None,
        "response": None,
        "role": "user",
        "tokens": ending.tokens,
    }
