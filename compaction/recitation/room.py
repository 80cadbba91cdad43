"""Room for what is recited: parts between marks of their own, as far as the tokens go."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compaction.plan import Count

_ENDS = re.compile(
    r"</(dashboard|recent_operations|edited_files|terminals|browser|guidance|key_files"
    r"|recent_observations|todo)>"
)

KEPT = 1_000
"""Lines whose tokens are remembered at most (ours)."""


class Lines(dict[str, int]):
    """Tokens of each line with its end, counted once: most are told again at the next call."""

    def __init__(self, count: Count) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, line: str) -> int:
        if len(self) >= KEPT:
            self.clear()
        tokens = self[line] = self._count(f"{line}\n")
        return tokens


class Room:
    """Tokens that are left. Lines are counted one by one, which is never less than all at once
    but for the rounding of a session's counting; a token a line is kept for that."""

    def __init__(self, left: int, lines: Lines) -> None:
        self.left, self.lines = left, lines

    def fits(self, line: str) -> bool:
        """Take the room of a line, where there is enough of it."""
        cost = self.lines[line] + 1
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def part(self, name: str, lines: Iterable[str], *, newest_first: bool = True) -> str:
        """As many lines as fit between marks; newest given first are told last."""
        if not self.fits(f"<{name}>\n</{name}>"):
            return ""
        told: list[str] = []
        for line in lines:
            line = harmless(line)
            if not self.fits(line):
                break
            told.append(line)
        if newest_first:
            told.reverse()
        return "\n".join([f"<{name}>", *told, f"</{name}>"]) if told else ""


def harmless(line: str) -> str:
    """A line that cannot end any of the parts that it may stand in."""
    return _ENDS.sub(r"<\\/\1>", line) if "</" in line else line
