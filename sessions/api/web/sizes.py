"""Limits on the shape of a JSON body, counted before it is parsed."""

from __future__ import annotations

import re
from typing import Any

VALUES = 200_000
"""Values (objects, lists, strings, numbers …) in one body."""
BLOCKS = 1000
"""Content blocks in one message."""

# The last quote is optional: a string that does not end is one match, and not one per quote in it.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class OversizedBody(ValueError):
    """A limit that a body exceeds, in one sentence; `pointer` is where."""

    def __init__(self, sentence: str, pointer: str = "") -> None:
        super().__init__(sentence)
        self.pointer = pointer


def check_values(raw: bytes) -> None:
    """Refuse a body with more than VALUES values. Raises OversizedBody.

    Each value but the first of a list or object follows a comma; and the first follows its bracket.
    """
    if _separators(raw) < VALUES:  # at most so many, even if none is inside a string
        return
    # At least so many strings; half of them may be names.
    strings = (raw.count(b'"') - raw.count(b'\\"')) // 2
    if strings > 2 * VALUES or _separators(_STRING.sub(b"", raw)) >= VALUES:
        raise OversizedBody(
            f"The body holds more than {VALUES:,} values. Split it into several requests."
        )


def check_blocks(body: Any) -> None:
    """Refuse a message with more than BLOCKS content blocks. Raises OversizedBody."""
    messages = body.get("messages") if isinstance(body, dict) else None
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and len(content) > BLOCKS:
            raise OversizedBody(
                f"A message may have at most {BLOCKS:,} content blocks; this one has "
                f"{len(content):,}. Split it into several messages.",
                f"/messages/{index}/content",
            )


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")
