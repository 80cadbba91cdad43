"""Edit feasibility: which edits find the text that they replace in the context."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from compaction.context.blocks import Block, FileRef
from compaction.context.edits import Entry
from compaction.context.session import Call, Session
from compaction.context.stubs import stand_in
from compaction.losses.feasibility import EditIndex, feasibility
from tests.build import Talk

SHOWN = "  1→def area(a):\n  2→    return a * a\n  3→\n  4→print(area(2))\n"


@dataclass
class Run:
    entries: list[Entry]


def _talk(old: str) -> tuple[Talk, Block]:
    """A file is read, and edited two steps later."""
    talk = Talk()
    talk.user("go")
    talk.respond()
    use = talk.call("Read", {"path": "a.py"}, file=FileRef("a.py", "read"))
    read = talk.result(use, SHOWN)
    talk.respond()
    talk.respond()
    given = {"file_path": "a.py", "old_string": old, "new_string": "x"}
    talk.call("Edit", given, file=FileRef("a.py", "edit"))
    return talk, read


def _session(talk: Talk) -> Session:
    steps = max(block.born for block in talk.blocks)
    return Session(tuple(talk.blocks), tuple(Call(n, "") for n in range(1, steps + 1)), "", 200_000)


def _run(talk: Talk, read: Block, text: str | None, until: int | None) -> Run:
    """The reading leaves at a step; a replacement may keep some of it."""
    entries = [Entry(block, block.born) for block in talk.blocks if block is not read]
    entries.append(Entry(read, read.born, until))
    if text is not None and until is not None:
        entries.append(Entry(stand_in(read, text, 9, "payback"), until))
    return Run(entries)


@pytest.mark.parametrize(
    ("old", "kept", "until", "share"),
    [
        ("def area(a):\n    return a * a", None, None, 1.0),
        ("def area(a):\n    return a * a", None, 3, 0.0),
        ("def area(a):\n    return a * a", None, 99, 1.0),
        ("def area(a):\n    return a * a", "[offloaded: 4 lines]\n1→def area(a):", 3, 0.0),
        ("def area(a):\n    return a * a", "1→def area(a):\n2→    return a * a", 3, 1.0),
        ("    return a * a\n\nnever seen", None, None, 1.0),
        ("    return a * a\n\nnever seen", "stub", 3, 0.0),
    ],
)
def test_an_edit_needs_every_line_that_it_has_seen(
    old: str, kept: str | None, until: int | None, share: float
) -> None:
    talk, read = _talk(old)
    found = feasibility(EditIndex(_session(talk)), _run(talk, read, kept, until))
    assert (found.edits, found.share) == (1, share)


def test_an_edit_of_what_the_log_never_shows_is_left_out() -> None:
    talk, read = _talk("nothing of this was seen")
    found = feasibility(EditIndex(_session(talk)), _run(talk, read, None, None))
    assert (found.edits, found.share) == (0, 1.0)
