"""The lines of a file that a tool result shows, without line numbers and surrounding frame."""

from __future__ import annotations

import re
from dataclasses import dataclass

from compaction.context.blocks import FileRef

_NUMBERED = re.compile(r"[ \t]{0,12}(\d{1,7})(?:→|\t|: ?| ?\| ?)")
_WRAPPED = re.compile(r"<returncode>-?\d+</returncode>\n<output>\n|<output>\n")
_OUTPUT = "Output:\n"

HEAD = 10
"""Maximum lines of a frame before the first numbered line."""
TAIL = 40
"""Maximum lines after a numbered listing that do not belong to the file."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines of a file from line `first` on, and the frame that the tool put around them.

    `raw` are the same lines as the tool printed them, with their numbers.
    """

    first: int
    lines: tuple[str, ...]
    raw: tuple[str, ...]
    head: str = ""
    tail: str = ""

    @property
    def last(self) -> int:
        """Number of the last line; `first` - 1 if there is none."""
        return self.first + len(self.lines) - 1


def shown(text: str, file: FileRef | None) -> Shown | None:
    """Return the lines of a file that a text shows, or None if that is unclear.

    Numbers in the text win (`cat -n`, an arrow, a colon or a bar after them). Otherwise lines count
    from the start of `file`, and the result is None if there are more lines than requested. Linear
    in the text.
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
    """Split the output of a shell tool into frame, content and frame."""
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
        # Some tools also number the empty line after the last line break.
        lines.pop()
        raw.pop()
    head = "".join(f"{row}\n" for row in rows[:start])
    return Shown(first, tuple(lines), tuple(raw), head, "\n".join(rows[end:])) if lines else None


def content(text: str) -> tuple[str, int]:
    """Return the file content in a tool result, and the number of its first line."""
    found = _numbered(text)
    if found is not None:
        return "\n".join(found.lines), found.first
    return _unwrapped(text)[1], 1
