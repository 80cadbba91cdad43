"""A context made ready to be sent: the same blocks always give the same bytes.

Objects that we make have their keys in alphabetical order; inputs and schemas of tools keep the
order in which they came. Nothing here depends on a clock or on where it runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compaction.context import Block, Ending
from compaction.render.chat import openai
from compaction.render.content import text_part
from compaction.render.messages_api import anthropic
from compaction.render.normalise import WireOf
from compaction.render.pairs import pairs

__all__ = ["WireOf", "anthropic", "as_blocks", "openai", "pairs"]


def as_blocks(
    blocks: Iterable[Block], wire_of: WireOf, ending: Ending | None = None
) -> dict[str, Any]:
    """{blocks, notes}: what stands, in order and unchanged, for those who render it themselves.

    `message` is the number of the message that a block is of (for a replacement, of its first
    target); `refs` name the originals that a replacement's text refers to. What is recited comes
    last, of the message before it.
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
    if ending.text and listed:
        listed.append(_recited(ending, listed[-1]["message"]))
    return {"blocks": listed, "notes": []}


def _recited(ending: Ending, message: int) -> dict[str, Any]:
    return {
        "block": text_part(ending.text),
        "id": "recitation",
        "kind": "recitation",
        "message": message,
        "refs": [],
        "replaces": None,
        "response": None,
        "role": "user",
        "tokens": ending.tokens,
    }
