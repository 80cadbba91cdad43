"""Wire blocks in Anthropic's form, and helpers for log values."""

from __future__ import annotations

from datetime import UTC, datetime

from compaction.seen.people import words_of
from sessions.importers.records import Json

Block = dict[str, Json]

_LATEST = 253402300799999
"""The last millisecond of the year 9999; later times are invalid."""


def blocks_of(content: Json) -> list[Block]:
    """Convert a message's content to blocks; existing blocks stay unchanged."""
    if content is None:
        return []
    if isinstance(content, str):
        return [text_block(content)] if content else []
    if not isinstance(content, list):
        return [{"type": "other", "value": content}]
    return [_block(item) for item in content]


def text_block(text: str) -> Block:
    """A block of plain text."""
    return {"type": "text", "text": text}


def _block(item: Json) -> Block:
    if isinstance(item, str):
        return text_block(item)
    if isinstance(item, dict):
        known = item if isinstance(item.get("type"), str) else {**item, "type": "other"}
        return dict(known)
    return {"type": "other", "value": item}


def text_of(blocks: list[Block]) -> str:
    """The text of all text blocks, joined by line breaks."""
    return "\n".join(b["text"] for b in blocks if isinstance(b.get("text"), str))


def has_type(blocks: list[Block], block_type: str) -> bool:
    """Whether any block has this type."""
    return any(block.get("type") == block_type for block in blocks)


def is_said_in(block: Block) -> bool:
    """Whether a person may have sent a block: not a tool's result, nor a text by a program."""
    if block.get("type") != "text":
        return block.get("type") != "tool_result"
    text = string(block.get("text"))
    return bool(words_of(text)) or not text.strip()


def string(value: Json) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: Json) -> dict[str, Json]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Json) -> list[Json]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def milliseconds(value: Json) -> int | None:
    """Milliseconds since the epoch, from ISO text, seconds or milliseconds; None if invalid.

    Text without a time zone is UTC.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        stamp = value if value > 1e11 else value * 1000
        return int(stamp) if 0 <= stamp <= _LATEST else None
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
