"""Which lines of a file a tool result shows."""

from __future__ import annotations

import pytest

from compaction.context.blocks import FileRef
from compaction.seen.shown import shown


@pytest.mark.parametrize(
    ("text", "file", "first", "lines", "head", "tail"),
    [
        ("     1→a\n     2→b", None, 1, ("a", "b"), "", ""),
        ("7\ta\n8\t", None, 7, ("a",), "", ""),
        ("[File: a (9 lines)]\n3:a\n4:b\n(5 more)", None, 3, ("a", "b"),
         "[File: a (9 lines)]\n", "(5 more)"),
        (" 1 | a\n 2 | b", None, 1, ("a", "b"), "", ""),
        ("<returncode>0</returncode>\n<output>\nx\ny\n</output>", FileRef("p", "read"), 1,
         ("x", "y"), "<returncode>0</returncode>\n<output>\n", "</output>"),
        ("Wall time: 0\nOutput:\nx\ny\n", FileRef("p", "read", 5, 6), 5, ("x", "y"),
         "Wall time: 0\nOutput:\n", ""),
        ("x\ny", FileRef("p", "read", 5, 9), 5, ("x", "y"), "", ""),
    ],
)  # fmt: skip
def test_lines_are_separated_from_numbers_and_frames(
    text: str, file: FileRef | None, first: int, lines: tuple[str, ...], head: str, tail: str
) -> None:
    found = shown(text, file)
    assert found is not None
    assert (found.first, found.lines, found.head, found.tail) == (first, lines, head, tail)


@pytest.mark.parametrize("text", ["", "a\nb\nc"])
def test_lines_that_cannot_be_recognized(text: str) -> None:
    assert shown(text, FileRef("p", "read", 1, 2)) is None
    assert shown(text, None) is None
