"""A set of positions that counts how many come before another."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(slots=True)
class Places:
    """Positions in a context as ordered ranges [begin, end): few, however long a session is."""

    ranges: list[tuple[int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return sum(end - begin for begin, end in self.ranges)

    def before(self, position: int) -> int:
        """Count the positions before this one."""
        found = 0
        for begin, end in self.ranges:
            if position <= begin:
                break
            found += min(end, position) - begin
        return found

    def add(self, position: int) -> None:
        """Add a position if it is missing."""
        at = self._at(position)
        begin, end = self.ranges[at] if at >= 0 else (position, position)
        if at >= 0 and position < end:
            return
        if at < 0 or position > end:
            at += 1
            self.ranges.insert(at, (position, position + 1))
        else:
            self.ranges[at] = begin, position + 1
        if at + 1 < len(self.ranges) and self.ranges[at + 1][0] == position + 1:
            self.ranges[at] = self.ranges[at][0], self.ranges.pop(at + 1)[1]

    def remove(self, position: int) -> None:
        """Remove a position if it is present."""
        at = self._at(position)
        if at < 0 or position >= self.ranges[at][1]:
            return
        begin, end = self.ranges[at]
        parts = [(begin, position), (position + 1, end)]
        self.ranges[at : at + 1] = [one for one in parts if one[0] < one[1]]

    def _at(self, position: int) -> int:
        """Return the index of the last range that begins at or before a position; -1 for none."""
        return bisect_right(self.ranges, position, key=lambda one: one[0]) - 1
