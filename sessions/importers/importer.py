"""What is said of a log format, in one record: its module defines it as `IMPORTER`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessions.importers.records import Json, Log


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """How to read a format, and how to tell it: from the objects of the first lines (JSONL), from
    the whole document (JSON), or from its text."""

    name: str
    """Stored with each file and session that was read so: it never changes."""
    order: int
    """When it is asked whether a file is its own: before all wider formats, which would accept the
    same file. No two have the same."""
    title: str
    files: str
    """Which files have this format."""
    recognised_by: str
    read: Callable[[bytes, str], Log]
    knows_lines: Callable[[list[dict[str, Json]]], bool] | None = None
    knows_document: Callable[[Json], bool] | None = None
    knows_text: Callable[[str], bool] | None = None
    """For formats that are not JSON: from the first characters."""
    split: Callable[[bytes], list[list[int]]] | None = None
    """For formats whose files people join with `cat`: the numbers of the lines of each log."""
    folder: str = ""
    """Where agents leave such files on the machine of their user."""
    rank: int = 99
    """Place in lists that people read: first what most have, then the others by title."""
