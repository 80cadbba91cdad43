"""Files that were read again after they had left the context."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.context.blocks import Block, FileRef
from compaction.context.edits import Entry
from compaction.losses.rereads import read_again
from tests.build import Talk


def reading(name: str, born: int, text: str = "a") -> Block:
    """A file read that is in the context from a step on."""
    talk = Talk()
    talk.user("text")
    return replace(
        talk.blocks[0], id=name, born=born, text=text, tokens=10 * born, role="tool",
        type="tool_result", file=FileRef("a.py", "read"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("second", "gone", "found"),
    [
        (reading("b", 6), 4, [(6, 60)]),
        (reading("b", 6), 5, [(6, 60)]),
        (reading("b", 6), 6, []),  # was in the context of the call at step 5
        (reading("b", 6), None, []),
        (reading("b", 6, "changed"), 4, []),
        (replace(reading("b", 6), replaces="a"), 4, []),
        (replace(reading("b", 6), type="text"), 4, []),
        (replace(reading("b", 6), file=FileRef("a.py", "edit")), 4, []),
        (replace(reading("b", 6), file=None), 4, []),
        (reading("a", 6), 4, []),  # the same block stands again: nothing was read
    ],
)
def test_what_counts_as_read_again(
    second: Block, gone: int | None, found: list[tuple[int, int]]
) -> None:
    entries = [Entry(second, second.born), Entry(reading("a", 2), 2, gone)]
    assert read_again(entries) == found


def test_each_reading_is_compared_with_all_earlier_ones() -> None:
    entries = [
        Entry(reading("a", 1), 1, 3),
        Entry(reading("b", 5), 5, 20),
        Entry(reading("c", 7), 7, 8),
        Entry(reading("d", 10), 10, 12),
        Entry(reading("e", 21), 21),
    ]
    assert read_again(entries) == [(5, 50), (21, 210)]
