"""Model calls that were made because text had left the context."""

from __future__ import annotations

import json

import pytest

from compaction.context.edits import Entry
from compaction.losses.repairs import repairs
from tests.build import Talk

TEXT = "one\ntwo\nthree"


def test_what_was_read_back_was_removed() -> None:
    talk = Talk()
    talk.user("Go.")
    talk.respond()
    shown = talk.result(talk.call("Bash", {"command": "ls"}), TEXT)
    talk.respond()
    use = talk.call("mcp__contextlab__read_back", {"ref": f"{shown.id}@ab12cd34"})
    talk.result(use, TEXT)
    entries = [Entry(block, block.born) for block in talk.blocks]
    assert repairs(entries, {1: 2}) == ()
    entries[2] = Entry(shown, shown.born, 2, closed_by=1)
    [found] = repairs(entries, {1: 2})
    assert (found.kind, found.step, found.block) == ("repeat", 2, use)
    assert found.result is not None and found.result.block.text == TEXT
    assert found.earlier is not None and json.loads(found.earlier.text) == {"command": "ls"}


@pytest.mark.parametrize(
    ("tool", "first", "then", "lines", "again"),
    [
        ("Grep", {"pattern": "x", "-A": 20}, {"pattern": "x", "-A": 25}, TEXT + "\nfour", True),
        ("Grep", {"pattern": "x", "-A": 20}, {"pattern": "x", "-A": 25}, "four\nfive", False),
        ("Grep", {"pattern": "x1", "-A": 20}, {"pattern": "x2", "-A": 20}, TEXT, False),
        ("get_order", {"order": 20}, {"order": 25}, TEXT, False),
        ("Bash", {"command": "grep -C 3 x a"}, {"command": "grep -C5 x a"}, TEXT, True),
        ("Bash", {"command": "ls a | head -20"}, {"command": "ls a | head -30"}, TEXT, True),
        ("Bash", {"command": "grep x1 a"}, {"command": "grep x2 a"}, TEXT, False),
        ("Bash", {"command": "ls a-20"}, {"command": "ls a-30"}, TEXT, False),
    ],
)
def test_a_look_for_more_of_the_same_repeats_what_it_shows_again(
    tool: str, first: dict[str, object], then: dict[str, object], lines: str, again: bool
) -> None:
    talk = Talk()
    talk.user("Go.")
    talk.respond()
    shown = talk.result(talk.call(tool, first), TEXT)
    talk.respond()
    talk.result(talk.call(tool, then), lines)
    entries = [Entry(block, block.born) for block in talk.blocks]
    entries[2] = Entry(shown, shown.born, 2, closed_by=1)
    assert [one.kind for one in repairs(entries, {1: 2})] == (["repeat"] if again else [])
