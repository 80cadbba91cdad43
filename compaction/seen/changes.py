"""What a tool call did to a file, from its input: the new text, or replacements within it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compaction.context.blocks import Block
from compaction.context.stubs import arguments

_WHOLE = ("content", "file_text", "contents", "new_content")
_PAIRS = (("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText"))
_SEARCH = re.compile(r"[<-]{5,9} SEARCH")
_MIDDLE = re.compile(r"={5,9}\n")
_REPLACE = re.compile(r"[>+]{5,9} REPLACE")
_LONGEST_PATCH = 400_000


@dataclass(frozen=True, slots=True)
class Swap:
    """Replace one text by another, once or everywhere."""

    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """The effect of one call on one file: its `whole` new text, or `swaps` in order."""

    whole: str | None = None
    swaps: tuple[Swap, ...] = ()


def change_of(use: Block) -> FileChange | None:
    """Return the effect of a write or an edit on its file; None if the call does not show it."""
    file, given = use.file, arguments(use)
    if file is None:
        return None
    if given is None:
        return _patched(use.text, file.path)
    if file.action == "write":
        whole = next((given[key] for key in _WHOLE if isinstance(given.get(key), str)), None)
        if whole is not None:
            return FileChange(whole)
    edits = given.get("edits")
    parts = edits if isinstance(edits, list) else [given]
    swaps = [_swap(part) for part in parts if isinstance(part, Mapping)]
    known = tuple(swap for swap in swaps if swap is not None)
    if known and len(known) == len(parts):
        return FileChange(swaps=known)
    for value in given.values():
        if isinstance(value, str) and len(value) <= _LONGEST_PATCH:
            change = _patched(value, file.path) or _searched(value)
            if change is not None:
                return change
    return None


def _swap(given: Mapping[str, Any]) -> Swap | None:
    for before, after in _PAIRS:
        old, new = given.get(before), given.get(after)
        if isinstance(old, str) and isinstance(new, str) and old:
            return Swap(old, new, given.get("replace_all") is True)
    return None


def _searched(text: str) -> FileChange | None:
    """Parse search-and-replace blocks (Cline, aider)."""
    if " SEARCH" not in text or " REPLACE" not in text:
        return None
    swaps = tuple(_swaps(text))
    return FileChange(swaps=swaps) if swaps else None


def _swaps(text: str) -> Iterator[Swap]:
    """Yield the swaps of complete search-and-replace blocks that search for something."""
    old: list[str] | None = None
    new: list[str] | None = None
    for line in (f"{line}\n" for line in text.split("\n")):
        if old is None:
            old = [] if _SEARCH.match(line) else None
        elif new is None:
            if _MIDDLE.match(line):
                new = []
            else:
                old.append(line)
        elif not _REPLACE.match(line):
            new.append(line)
        else:
            if old:
                yield Swap("".join(old), "".join(new))
            old = new = None


def _patched(text: str, path: str) -> FileChange | None:
    """Return what a Codex patch does to one of its files."""
    lines: list[str] | None = None
    added = False
    for line in text.splitlines():
        if line.startswith("*** "):
            if lines is not None:
                break
            if line.partition(" File: ")[2].strip() == path:
                lines, added = [], line.startswith("*** Add")
        elif lines is not None:
            lines.append(line)
    if lines is None:
        return None
    if added:
        return FileChange("".join(f"{line[1:]}\n" for line in lines if line[:1] == "+"))
    return FileChange(swaps=tuple(_hunks(lines)))


def _hunks(lines: list[str]) -> list[Swap]:
    swaps: list[Swap] = []
    old: list[str] = []
    new: list[str] = []
    for line in [*lines, "@@"]:
        if line.startswith("@@"):
            if old and old != new:
                swaps.append(Swap("\n".join(old), "\n".join(new)))
            old, new = [], []
            continue
        if line[:1] in ("-", " ", ""):
            old.append(line[1:])
        if line[:1] in ("+", " ", ""):
            new.append(line[1:])
    return swaps
