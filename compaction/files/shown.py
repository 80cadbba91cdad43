"""Which lines of a file a tool result shows, whatever numbers and frame stand round them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compaction.context import FileRef

_NUMBERED = re.compile(r"[ \t]{0,12}(\d{1,7})(?:→|\t|: ?| ?\| ?)")
_WRAPPED = re.compile(r"<returncode>-?\d+</returncode>\n<output>\n|<output>\n")
_OUTPUT = "Output:\n"

HEAD = 10
"""So many lines of a frame may come before the first numbered line."""
TAIL = 40
"""A numbered listing is followed by at most so many lines that are not of the file."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines of a file from line `first` on, and the frame that the tool put round them.

    `raw` are the same lines as the tool printed them, with their numbers.
    """

    first: int
    lines: tuple[str, ...]
    raw: tuple[str, ...]
    head: str = ""
    tail: str = ""

    @property
    def last(self) -> int:
        """Number of the last line; one less than `first` where there is none."""
        return self.first + len(self.lines) - 1


def shown(text: str, file: FileRef | None) -> Shown | None:
    """The lines of a file that a text shows, or None where they cannot be told.

    Numbers in the text win (`cat -n`, an arrow, a colon or a bar after them); else lines count
    from where `file` says, and None is the answer where there are more of them than were asked
    for. Linear in the text.
    """
    found = _numbered(text)
    if found is not None:
        return found
    if file is None:
        return None
    head, body, tail = _unwrapped(text)
    lines = body.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    first = file.start or 1
    if not lines or (file.end is not None and first + len(lines) - 1 > file.end):
        return None
    whole = tuple(lines)
    return Shown(first, whole, whole, head, tail)


def _unwrapped(text: str) -> tuple[str, str, str]:
    """Frame, content and frame of the output of a shell tool."""
    wrapped = _WRAPPED.match(text)
    if wrapped is not None and text.endswith("</output>"):
        return wrapped.group(), text[wrapped.end() : -len("</output>")], "</output>"
    place = text.find(_OUTPUT, 0, 400)
    if text.startswith(("Chunk ID:", "Exit code:", "Wall time:")) and place >= 0:
        place += len(_OUTPUT)
        return text[:place], text[place:], ""
    return "", text, ""


def _numbered(text: str) -> Shown | None:
    rows = text.split("\n")
    start = next((i for i, row in enumerate(rows[: HEAD + 1]) if _NUMBERED.match(row)), None)
    if start is None:
        return None
    lines: list[str] = []
    first = 0
    for row in rows[start:]:
        found = _NUMBERED.match(row)
        if found is None:
            break
        number = int(found.group(1))
        if not lines:
            first = number
        elif number != first + len(lines):
            break
        lines.append(row[found.end() :])
    end = start + len(lines)
    if len(lines) < 2 and len(rows) > 2 or len(rows) - end > TAIL:
        return None
    raw = rows[start:end]
    if not lines[-1]:
        # Some tools number the empty line after the last line break, others do not.
        lines.pop()
        raw.pop()
    head = "".join(f"{row}\n" for row in rows[:start])
    return Shown(first, tuple(lines), tuple(raw), head, "\n".join(rows[end:])) if lines else None


def content(text: str) -> tuple[str, int]:
    """What a tool result shows of a file without numbers and frame, and its first line's number."""
    found = _numbered(text)
    if found is not None:
        return "\n".join(found.lines), found.first
    return _unwrapped(text)[1], 1
