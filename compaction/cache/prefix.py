"""Tokens before a position, under edits: a Fenwick tree that grows at its end."""

from __future__ import annotations


class PrefixSums:
    """Sums of the first n of a growing list of numbers, in O(log n) per update and query."""

    __slots__ = ("_tree",)

    def __init__(self) -> None:
        self._tree: list[int] = [0]

    def __len__(self) -> int:
        return len(self._tree) - 1

    def append(self, value: int) -> None:
        """Append a number."""
        tree = self._tree
        place = len(tree)
        below = place - (place & -place)
        child = place - 1
        while child > below:
            value += tree[child]
            child &= child - 1
        tree.append(value)

    def add(self, index: int, change: int) -> None:
        """Add to the number at a 0-based index."""
        tree = self._tree
        place = index + 1
        while place < len(tree):
            tree[place] += change
            place += place & -place

    def before(self, index: int) -> int:
        """Return the sum of the numbers at indexes 0 … index - 1."""
        tree = self._tree
        total = 0
        while index > 0:
            total += tree[index]
            index &= index - 1
        return total
