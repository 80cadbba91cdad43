"""Foreign logs become our records: which formats there are, which one a file is, and reading it.

Pure: bytes in, values out. The format is told by content, never by the file's name; the name only
helps to name a session whose file states no id.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from sessions.importers import (
    anthropic_messages,
    claude_code,
    codex,
    exported,
    mini_swe_agent,
    openai_messages,
    pi,
    swe_agent,
)
from sessions.importers.counted import Counts, counts
from sessions.importers.decoded import NotALog, Unreadable, decode, lines
from sessions.importers.records import Json, Log

__all__ = ["IMPORTERS", "Counts", "Importer", "NotALog", "counts", "detect", "parse"]

_HEAD = 200
"""Readable lines at which a JSONL file is looked at to tell its format."""


class Importer(NamedTuple):
    """How to read a format, and how to tell it: from lines (JSONL) or from the whole document."""

    read: Callable[[bytes, str], Log]
    knows_lines: Callable[[list[dict[str, Json]]], bool] | None = None
    knows_document: Callable[[Json], bool] | None = None


IMPORTERS: dict[str, Importer] = {
    exported.FORMAT: Importer(exported.read, knows_lines=exported.recognises),
    claude_code.FORMAT: Importer(claude_code.read, knows_lines=claude_code.recognises),
    codex.FORMAT: Importer(codex.read, knows_lines=codex.recognises),
    pi.FORMAT: Importer(pi.read, knows_lines=pi.recognises),
    swe_agent.FORMAT: Importer(swe_agent.read, knows_document=swe_agent.recognises),
    mini_swe_agent.FORMAT: Importer(mini_swe_agent.read, knows_document=mini_swe_agent.recognises),
    anthropic_messages.FORMAT: Importer(
        anthropic_messages.read, knows_document=anthropic_messages.recognises
    ),
    openai_messages.FORMAT: Importer(
        openai_messages.read, knows_document=openai_messages.recognises
    ),
}
"""Asked in this order: what one format accepts, a later and wider one would accept as well."""


def detect(data: bytes, name: str = "") -> str | None:
    """Name the format of a file, or None if it is no log that we read.

    `name` is not looked at; it is taken so that callers need not choose.
    """
    del name
    head = _objects(data)
    for log_format, importer in IMPORTERS.items():
        if importer.knows_lines is not None and head and importer.knows_lines(head):
            return log_format
    try:
        value = decode(data)
    except Unreadable:
        return None
    for log_format, importer in IMPORTERS.items():
        if importer.knows_document is not None and importer.knows_document(value):
            return log_format
    return None


def parse(data: bytes, name: str = "") -> Log:
    """Read a file of any known format; raises NotALog with what was found and what to do."""
    log_format = detect(data, name)
    if log_format is None:
        raise NotALog(_what(data))
    return IMPORTERS[log_format].read(data, name)


def _objects(data: bytes) -> list[dict[str, Json]]:
    """Objects on the first lines; none if most lines are something else (prose with examples)."""
    head = list(islice(lines(data), _HEAD))
    objects = [line.value for line in head if isinstance(line.value, dict)]
    return objects if 2 * len(objects) >= len(head) else []


def _what(data: bytes) -> str:
    known = ", ".join(IMPORTERS)
    if not data.strip():
        return "The file is empty. Choose a file that holds a session."
    if data[:2] == b"\x1f\x8b" or data[:4] == b"PK\x03\x04":
        return "The file is compressed. Unpack it and import what is inside."
    if b"\x00" in data[:4096]:
        return f"The file is binary, no text log. We read: {known}."
    try:
        decode(data)
    except Unreadable:
        if not _objects(data):
            return f"The file is neither JSON nor JSONL. We read: {known}."
    return f"The file is JSON, but no agent log that we know. We read: {known}."
