"""A context made ready to be sent: the same blocks always give the same bytes.

Objects that we make have their keys in alphabetical order; inputs and schemas of tools keep the
order in which they came. Nothing here depends on a clock or on where it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compaction.context import Block
from compaction.render.chat import openai
from compaction.render.messages_api import anthropic
from compaction.render.normalise import WireOf

__all__ = ["WireOf", "anthropic", "as_blocks", "openai"]


def as_blocks(blocks: Iterable[Block], wire_of: WireOf) -> dict[str, Any]:
    """{blocks, notes}: what stands, in order and unchanged, for those who render it themselves.

    `message` is the number of the message that a block is of (for a replacement, of its first
    target); `refs` name the originals that a replacement's text refers to.
    """
    listed = [
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
    return {"blocks": listed, "notes": []}
