"""What differs between two texts at one place: a clock, an identifier, a counter."""

from __future__ import annotations

import re
from typing import Literal

from compaction.cache.prefix_pieces import (
    PromptPiece,
)

Kind = Literal[
    "model",
    "setting",
    "images",
    "tool_added",
    "tool_removed",
    "tool_order",
    "tool_changed",
    "clock",
    "identifier",
    "counter",
    "key_order",
    "whitespace",
    "system_changed",
    "message_edited",
    "message_removed",
]
"""The kind of difference; the most specific one that applies."""


_AROUND = 40
"""Characters around a difference searched for a date or an identifier (our choice)."""


_CLOCK = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?|\b\d{1,2}:\d\d(?::\d\d)?\b"
    r"|\b1[5-9]\d{8}(?:\d{3})?\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
    r"|\b(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Satur|Sat|Sun)(?:day)?\b"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} \d{1,2}\b"
)


_IDENTIFIER = re.compile(
    r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b|\b[0-9a-f]{12,64}\b"
    r"|\b(?:req|msg|sess|session|trace|run|call|toolu)[_-][A-Za-z0-9]{6,}\b"
)


_COUNTER = re.compile(r"\d+")


_VOLATILE: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("identifier", _IDENTIFIER),
    ("clock", _CLOCK),
    ("counter", _COUNTER),
)


def kind_of_difference(before: PromptPiece, after: PromptPiece, at: int) -> Kind:
    if before.value == after.value:
        return "key_order"
    if re.sub(r"\\[nrt]|\s", "", before.text) == re.sub(r"\\[nrt]|\s", "", after.text):
        return "whitespace"
    for kind, pattern in _VOLATILE:
        ours, theirs = (_covering(pattern, item.text, at) for item in (before, after))
        if ours and theirs and ours != theirs:
            return kind
    if before.layer == "messages":
        return "message_edited"
    return "tool_changed" if before.layer == "tools" else "system_changed"


def _covering(pattern: re.Pattern[str], text: str, at: int) -> str:
    """Return the pattern's match that covers a position; empty without one."""
    start = max(at - _AROUND, 0)
    window = text[start : at + _AROUND]
    for match in pattern.finditer(window):
        if match.start() <= at - start < match.end():
            return match.group()
    return ""
