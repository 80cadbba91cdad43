"""Token budget of a recitation, and its parts in elements of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compaction.proposals.plan import Count

_ENDS = re.compile(
    r"</(dashboard|recent_operations|edited_files|terminals|browser|guidance|key_files"
    r"|recent_observations|todo)>"
)

KEPT = 1_000
"""Maximum lines whose tokens are cached (our choice)."""


class LineTokens(dict[str, int]):
    """Tokens of each line with its line end, cached: most are recited again at the next call."""

    def __init__(self, count: Count) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, line: str) -> int:
        if len(self) >= KEPT:
            self.clear()
        tokens = self[line] = self._count(f"{line}\n")
        return tokens


class Room:
    """Tokens that are left.

    Lines are counted one by one, which is never less than counting them together, except for the
    rounding of a session's counting; one token per line is reserved for that.
    """

    def __init__(self, left: int, lines: LineTokens) -> None:
        self.left, self.lines = left, lines

    def fits(self, line: str) -> bool:
        """Reserve the tokens of a line if there is room."""
        cost = self.lines[line] + 1
        if cost > self.left:
            return False
        self.left -= cost
        return True

    def part(self, name: str, lines: Iterable[str], *, newest_first: bool = True) -> str:
        """Render as many lines as fit in an element; with `newest_first`, reverse them."""
        if not self.fits(f"<{name}>\n</{name}>"):
            return ""
        shown: list[str] = []
        for line in lines:
            line = harmless(line)
            if not self.fits(line):
                break
            shown.append(line)
        if newest_first:
            shown.reverse()
        return "\n".join([f"<{name}>", *shown, f"</{name}>"]) if shown else ""


def harmless(line: str) -> str:
    """Escape a line so that it cannot close an element around it."""
    return _ENDS.sub(r"<\\/\1>", line) if "</" in line else line
