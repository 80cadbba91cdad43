"""What commands print: a terminal must not obey what an agent or a file said."""

from __future__ import annotations

from typing import TextIO

_DIRECTIONS = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that turn the direction of what follows."""
_ESCAPES = {
    code: f"\\u{code:04x}"
    for code in (*range(0x20), *range(0x7F, 0xA0), *_DIRECTIONS)
    if chr(code) not in "\n\t"
}


def visible(text: str) -> str:
    """A text with its control characters, but line ends and tabs, as `\\u001b`: JSON stays the
    same JSON."""
    return text.translate(_ESCAPES)


class VisibleOutput:
    """Standard output whose control characters are visible."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def write(self, text: str) -> int:
        return self._out.write(visible(text))

    def flush(self) -> None:
        self._out.flush()

    def isatty(self) -> bool:
        return self._out.isatty()
